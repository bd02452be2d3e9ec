"""Samples and helpers for tests of other recordings, and for others that need them."""

from __future__ import annotations

KERNELS = (
    '"Kind","Agent_Id","Queue_Id","Stream_Id","Thread_Id","Dispatch_Id","Kernel_Id","Kernel_Name",'
    '"Correlation_Id","Start_Timestamp","End_Timestamp","LDS_Block_Size","Scratch_Size","VGPR_Count",'
    '"Accum_VGPR_Count","SGPR_Count","Workgroup_Size_X","Workgroup_Size_Y","Workgroup_Size_Z",'
    '"Grid_Size_X","Grid_Size_Y","Grid_Size_Z"\n'
    '"KERNEL_DISPATCH","Agent 4",1,3,9,1,16,"scale(float*)",1,1000000,3000000,512,0,8,4,16,256,1,1,'
    "65536,2,1\n"
    '"KERNEL_DISPATCH","Agent 5",2,4,9,2,17,"sum(float*)",2,1500000,2500000,0,0,8,0,16,64,1,1,6400,1,1\n'
)


COPIES = (
    '"Kind","Direction","Stream_Id","Source_Agent_Id","Destination_Agent_Id","Correlation_Id",'
    '"Start_Timestamp","End_Timestamp"\n'
    '"MEMORY_COPY","MEMORY_COPY_HOST_TO_DEVICE",3,"Agent 0","Agent 4",3,100000,900000\n'
    '"MEMORY_COPY","MEMORY_COPY_DEVICE_TO_HOST",4,"Agent 5","Agent 0",4,2600000,2700000\n'
    '"MEMORY_COPY","MEMORY_COPY_HOST_TO_HOST",4,"Agent 0","Agent 0",5,2600000,2700000\n'
)


AGENTS = (
    '"Node_Id","Agent_Type","Cu_Count","Name","Product_Name"\n'
    '0,"CPU",0,"EPYC","AMD EPYC"\n4,"GPU",104,"gfx90a","AMD Instinct MI250X"\n'
    '5,"GPU",304,"gfx942","AMD Instinct MI300X"\n'
)


STATS = (
    "Processing [report.sqlite] with [cuda_gpu_trace.py]...\n\n"
    "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),"
    "Bytes (MB),Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name\n"
    "1000,500,1,,,,,,,,,,4.194,8388.6,Pageable,Device,NVIDIA A100-SXM4-80GB (0),1,,7,"
    "[CUDA memcpy Host-to-Device]\n"
    "2000,3000,2,128,2,1,256,1,1,32,0.001,0.000,,,,,NVIDIA A100-SXM4-80GB (0),1,,13,"
    '"void scale<float>(float *, int)"\n'
    "6000,100,3,,,,,,,,,,1.000,10000,Device,Pinned,NVIDIA A100-SXM4-80GB (0),1,,7,[CUDA memcpy DtoH]\n"
    "7000,100,4,,,,,,,,,,1.000,10000,Device,Device,NVIDIA A100-SXM4-80GB (0),1,,7,"
    "[CUDA memcpy Peer-to-Peer]\n"
)
