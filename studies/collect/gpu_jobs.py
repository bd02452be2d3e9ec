"""Whole jobs on a GPU, for gpu_pairs.py: classifiers of images, language models, recommenders and their like,
trained or asked, with weights drawn at random. One step is one batch, and ends when it is done. On a GPU all
kernels of a step are launched at once, as one graph, so that times do not tell how busy the host was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Step = Callable[[], Any]

JOBS = (
    *("resnet-infer-4", "resnet-infer-32", "resnet-train-32", "mobilenet-infer-16"),
    *("mobilenet-train-64", "vit-infer-8", "vit-train-16", "encoder-infer-2", "encoder-infer-32"),
    *("encoder-train-16", "decoder-generate-1", "decoder-generate-32", "decoder-train-4"),
    *("recommender-infer-256", "recommender-train-4096", "lstm-infer-16", "lstm-train-64"),
    *("unet-infer-1", "unet-infer-8", "graph-train-1"),
)
VOCABULARY, WIDTH, HEADS = 32_000, 768, 12
TOKENS, CACHED = 128, 1024  # of an encoder's text, and read before the one that a decoder writes
TABLES, ROWS = 26, 200_000  # of a recommender
NODES, EDGES = 200_000, 2_000_000
STEPS_BEFORE = 3  # the graph: what is made in the first steps is not captured


def job_step(torch: Any, device: str, name: str, scale: float) -> Step:
    """One step of a job of JOBS, its weights and data on the device. scale: of images' sides, tables and
    graphs, to try the command out on a CPU."""
    family, mode, size = name.split("-")
    torch.manual_seed(0)
    with torch.device(device):
        model, data = FAMILIES[family](torch, int(size), scale)
        is_trained = mode == "train"
        step = (_trained if is_trained else _asked)(torch, model.train(is_trained), data)
        return step if device == "cpu" else _captured(torch, step)


def _captured(torch: Any, step: Step) -> Step:
    """The same kernels as a graph, which PyTorch captures once several steps have run on a stream of their
    own."""
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(STEPS_BEFORE):
            step()
    torch.cuda.current_stream().wait_stream(aside)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def _asked(torch: Any, model: Any, data: tuple) -> Step:
    kind = data[0].device.type

    def step() -> Any:
        with torch.inference_mode(), torch.autocast(kind, torch.bfloat16):
            return model(*data)

    return step


def _trained(torch: Any, model: Any, data: tuple) -> Step:
    kind = data[0].device.type
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6, momentum=0.9, foreach=True)

    def step() -> Any:
        optimizer.zero_grad()
        with torch.autocast(kind, torch.bfloat16):
            loss = model(*data).float().square().mean()
        loss.backward()
        optimizer.step()

    return step


def _images(torch: Any, count: int, scale: float) -> tuple:
    side = max(32, round(224 * min(1.0, scale)) // 32 * 32)
    return (torch.randn(count, 3, side, side),)


def _convolution(torch: Any, inward: int, outward: int, size: int, **options: Any) -> Any:
    return torch.nn.Sequential(
        torch.nn.Conv2d(inward, outward, size, padding=size // 2, bias=False, **options),
        torch.nn.BatchNorm2d(outward),
        torch.nn.ReLU(),
    )


def _around(torch: Any, inward: int, outer: int, stride: int) -> Any:
    """The way round a block, which changes the number of channels where the block does."""
    if inward == outer:
        return torch.nn.Identity()
    return _convolution(torch, inward, outer, 1, stride=stride)


def _of_blocks(torch: Any, stem: Any, blocks: list[tuple[Any, Any]], width: int) -> Any:
    """A classifier of images of residual blocks, each with its way round."""

    class Classifier(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem, self.classes = stem, torch.nn.Linear(width, 1000)
            self.blocks = torch.nn.ModuleList(torch.nn.ModuleList(pair) for pair in blocks)

        def forward(self, x: Any) -> Any:
            x = self.stem(x)
            for block, around in self.blocks:
                x = block(x) + around(x)
            return self.classes(x.mean((2, 3)))

    return Classifier()


def _resnet(torch: Any, count: int, scale: float) -> tuple[Any, tuple]:
    """ResNet-50's layers."""
    stem = torch.nn.Sequential(_convolution(torch, 3, 64, 7, stride=2), torch.nn.MaxPool2d(2))
    blocks, inward = [], 64
    for level, repeats in enumerate((3, 4, 6, 3)):
        inner, outer = 64 << level, 256 << level
        for place in range(repeats):
            stride = 2 if level and not place else 1
            block = torch.nn.Sequential(
                _convolution(torch, inward, inner, 1),
                _convolution(torch, inner, inner, 3, stride=stride),
                _convolution(torch, inner, outer, 1),
            )
            blocks.append((block, _around(torch, inward, outer, stride)))
            inward = outer
    by_channel = torch.channels_last
    (images,) = _images(torch, count, scale)
    model = _of_blocks(torch, stem, blocks, 2048).to(memory_format=by_channel)
    return model, (images.contiguous(memory_format=by_channel),)


def _mobilenet(torch: Any, count: int, scale: float) -> tuple[Any, tuple]:
    """Depthwise convolutions between pointwise ones, after MobileNetV2."""
    blocks, inward = [], 32
    for outer, repeats, first in ((24, 2, 2), (32, 3, 2), (64, 4, 2), (96, 3, 1), (160, 3, 2)):
        for place in range(repeats):
            stride, wide = 1 if place else first, 6 * inward
            block = torch.nn.Sequential(
                _convolution(torch, inward, wide, 1),
                _convolution(torch, wide, wide, 3, stride=stride, groups=wide),
                _convolution(torch, wide, outer, 1),
            )
            blocks.append((block, _around(torch, inward, outer, stride)))
            inward = outer
    stem = _convolution(torch, 3, 32, 3, stride=2)
    return _of_blocks(torch, stem, blocks, 160), _images(torch, count, scale)


def _vit(torch: Any, count: int, scale: float) -> tuple[Any, tuple]:
    """ViT-B/16's layers."""

    class Patches(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.patches = torch.nn.Conv2d(3, WIDTH, 16, stride=16)

        def forward(self, x: Any) -> Any:
            return self.patches(x).flatten(2).transpose(1, 2)

    model = torch.nn.Sequential(Patches(), _layers(torch, 12, WIDTH))
    return model, _images(torch, count, scale)


def _layers(torch: Any, count: int, width: int) -> Any:
    layer = torch.nn.TransformerEncoderLayer(
        width, width // 64, 4 * width, batch_first=True, dropout=0.0, activation="gelu"
    )
    return torch.nn.TransformerEncoder(layer, count, enable_nested_tensor=False)


def _encoder(torch: Any, count: int, scale: float) -> tuple[Any, tuple]:
    model = torch.nn.Sequential(torch.nn.Embedding(VOCABULARY, WIDTH), _layers(torch, 12, WIDTH))
    return model, (torch.randint(VOCABULARY, (count, TOKENS)),)


def _decoder(torch: Any, count: int, scale: float) -> tuple[Any, tuple]:
    """Writes a token after CACHED read ones, by their kept keys and values, or is trained on a text."""
    functional, heads = torch.nn.functional, HEADS

    class Block(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
            self.inward = torch.nn.Linear(WIDTH, 3 * WIDTH)
            self.outward = torch.nn.Linear(WIDTH, WIDTH)
            self.wide = torch.nn.Linear(WIDTH, 4 * WIDTH)
            self.narrow = torch.nn.Linear(4 * WIDTH, WIDTH)
            shape = (count, heads, CACHED, WIDTH // heads)
            self.keys = torch.randn(shape, dtype=torch.bfloat16)
            self.values = torch.randn(shape, dtype=torch.bfloat16)

        def forward(self, x: Any) -> Any:
            parts = self.inward(self.first(x)).chunk(3, -1)
            q, k, v = (p.unflatten(-1, (heads, -1)).transpose(1, 2) for p in parts)
            if not self.training:
                k = torch.cat([self.keys, k.to(self.keys.dtype)], 2)
                v = torch.cat([self.values, v.to(self.values.dtype)], 2)
            mixed = functional.scaled_dot_product_attention(
                q.to(k.dtype), k, v, is_causal=self.training
            )
            x = x + self.outward(mixed.transpose(1, 2).flatten(2))
            return x + self.narrow(functional.gelu(self.wide(self.second(x))))

    class Decoder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = torch.nn.Embedding(VOCABULARY, WIDTH)
            self.blocks = torch.nn.ModuleList(Block() for _ in range(12))
            self.words = torch.nn.Linear(WIDTH, VOCABULARY, bias=False)

        def forward(self, tokens: Any) -> Any:
            x = self.embedding(tokens if self.training else tokens[:, :1])
            for block in self.blocks:
                x = block(x)
            return self.words(x)

    return Decoder(), (torch.randint(VOCABULARY, (count, 4 * TOKENS)),)


def _recommender(torch: Any, count: int, scale: float) -> tuple[Any, tuple]:
    rows = max(100, round(ROWS * scale))

    class Recommender(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tables = torch.nn.Embedding(TABLES * rows, 32)
            sizes = ((32 * TABLES + 13, 512), (512, 256), (256, 1))
            layers = [part for size in sizes for part in (torch.nn.Linear(*size), torch.nn.ReLU())]
            self.layers = torch.nn.Sequential(*layers)

        def forward(self, places: Any, numbers: Any) -> Any:
            return self.layers(torch.cat([self.tables(places).flatten(1), numbers], 1))

    return Recommender(), (
        torch.randint(TABLES * rows, (count, TABLES)),
        torch.randn(count, 13),
    )


def _lstm(torch: Any, count: int, scale: float) -> tuple[Any, tuple]:
    class Last(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.LSTM(512, 1024, num_layers=2, batch_first=True)

        def forward(self, x: Any) -> Any:
            return self.layers(x)[0][:, -1]

    return Last(), (torch.randn(count, 64, 512),)


def _unet(torch: Any, count: int, scale: float) -> tuple[Any, tuple]:
    """One step of denoising an image."""

    def double(inward: int, outward: int) -> Any:
        pairs = ((inward, outward), (outward, outward))
        parts = [
            part
            for a, b in pairs
            for part in (
                torch.nn.Conv2d(a, b, 3, padding=1),
                torch.nn.GroupNorm(8, b),
                torch.nn.SiLU(),
            )
        ]
        return torch.nn.Sequential(*parts)

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.down = torch.nn.ModuleList([double(4, 128), double(128, 256), double(256, 512)])
            self.up = torch.nn.ModuleList([double(768, 256), double(384, 128)])
            self.last = torch.nn.Conv2d(128, 4, 1)

        def forward(self, x: Any) -> Any:
            kept = []
            for part in self.down:
                x = part(x)
                kept.append(x)
                x = torch.nn.functional.avg_pool2d(x, 2)
            x = kept.pop()
            for part in self.up:
                larger = torch.nn.functional.interpolate(x, scale_factor=2.0)
                x = part(torch.cat([larger, kept.pop()], 1))
            return self.last(x)

    side = max(16, round(64 * min(1.0, scale)) // 8 * 8)
    return Network(), (torch.randn(count, 4, side, side),)


def _graph(torch: Any, count: int, scale: float) -> tuple[Any, tuple]:
    """Three rounds of neighbours' mean on a graph at random."""
    nodes, edges = max(100, round(NODES * scale)), max(1000, round(EDGES * scale * count))

    class Graph(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.ModuleList(torch.nn.Linear(64, 64) for _ in range(3))

        def forward(self, x: Any, there: Any, here: Any) -> Any:
            for layer in self.layers:
                x = torch.relu(layer(torch.zeros_like(x).index_add(0, here, x[there])))
            return x

    return Graph(), (
        torch.randn(nodes, 64),
        torch.randint(nodes, (edges,)),
        torch.randint(nodes, (edges,)),
    )


FAMILIES: dict[str, Callable[..., tuple[Any, tuple]]] = {
    "resnet": _resnet,
    "mobilenet": _mobilenet,
    "vit": _vit,
    "encoder": _encoder,
    "decoder": _decoder,
    "recommender": _recommender,
    "lstm": _lstm,
    "unet": _unet,
    "graph": _graph,
}
