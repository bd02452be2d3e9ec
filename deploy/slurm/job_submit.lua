-- Slurm asks Jostle where a job goes and how long it takes: JobSubmitPlugins=lua, this file beside slurm.conf.
--
--   sbatch --comment='jostle workload=fft-m deadline=4x' job.sh
--
-- sets the node list, the time limit where none was given (at limit_confidence, 0.99; one that was given is checked), and the comment. Jobs that do not say `jostle` are not
-- looked at, and every job is accepted as it is where the service does not answer within two seconds. One that would make others
-- miss their limits begins when those have passed.
-- Environment of slurmctld: JOSTLE_URL (http://127.0.0.1:8000), JOSTLE_HEADERS (a file with an Authorization header).

local NAME = "^[%w%._%-:@+/*]+$"

local function asked(comment)
  local found = {}
  if comment == nil or not comment:match("^jostle%s") then return nil end
  for key, value in comment:gmatch("([%w_]+)=(%S+)") do
    if not value:match(NAME) then return nil end
    found[key] = value
  end
  if found.workload == nil then return nil end
  return found
end

local function ask(body)
  local url = os.getenv("JOSTLE_URL") or "http://127.0.0.1:8000"
  local headers = os.getenv("JOSTLE_HEADERS")
  local command = "curl -s -m 2 --connect-timeout 1 -H 'Content-Type: application/json'"
  if headers ~= nil then command = command .. " -H '@" .. headers .. "'" end
  -- Only names of letters, digits and a few signs are in the body: nothing a shell would read otherwise.
  local pipe = io.popen(command .. " --data '" .. body .. "' '" .. url .. "/v1/slurm/submit' 2>/dev/null")
  if pipe == nil then return nil end
  local answer = pipe:read("*a")
  pipe:close()
  return answer
end

local function place(job)
  local found = asked(job.comment)
  if found == nil then return end
  local body = '{"workload":"' .. found.workload .. '"'
  for _, key in ipairs({ "deadline", "confidence", "limit_confidence" }) do
    if found[key] ~= nil then body = body .. ',"' .. key .. '":"' .. found[key] .. '"' end
  end
  if job.req_nodes ~= nil and job.req_nodes ~= "" then
    if not job.req_nodes:match(NAME) then return end -- a list of its own: its owner knows better
    body = body .. ',"nodes":["' .. job.req_nodes .. '"]'
  end
  if job.time_limit ~= slurm.NO_VAL and job.time_limit > 0 then
    body = body .. ',"time_limit_minutes":' .. string.format("%d", job.time_limit)
  end
  local answer = ask(body .. "}")
  local comment = answer and answer:match('"comment":"([^"\\]+)"')
  if comment == nil then
    slurm.log_user("jostle: no answer, the job is taken as it is")
    return
  end
  slurm.log_user("%s", comment)
  job.comment = job.comment .. " | " .. comment
  local node = answer:match('"node":"([^"\\]+)"')
  if node ~= nil then job.req_nodes = node end
  local later = tonumber(answer:match('"begins_in_minutes":(%d+)') or "0")
  -- Until then somebody is there who would be killed at a time limit that was handed out.
  if later > 0 then
    local own = job.begin_time or 0
    if own >= slurm.NO_VAL then own = 0 end
    job.begin_time = math.max(own, os.time() + 60 * later)
  end
  local minutes = tonumber(answer:match('"time_limit_minutes":(%d+)') or "")
  if minutes ~= nil and job.time_limit == slurm.NO_VAL then job.time_limit = minutes end
end

function slurm_job_submit(job, partitions, user)
  local good, why = pcall(place, job)
  if not good then slurm.log_info("jostle: %s", tostring(why)) end
  return slurm.SUCCESS
end

function slurm_job_modify(job, before, partitions, user)
  return slurm.SUCCESS
end
