#!/usr/bin/env python3
"""Measure what scratch cuDNN asks for, for many convolutions on the card of this machine.

usage: measure_convolutions.py SECONDS -o MEASURED.json.xz     (needs torch and torchvision; two minutes on an H200)

The convolutions are those of torchvision's models at usual sides of images, of U-Nets, generators, diffusion models,
patch embeddings and audio encoders, and a few thousand by lot, at batches of 1 to 256. A line is
[format, batch, channels in, out, height, width, kernel (2), stride (2), padding (2), dilation, groups,
output height, width, bytes in forward, of the input's gradient, of the weight's].
tools/tabulate_convolutions.py makes the program's table of it.
"""
import argparse
import json
import lzma
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

BATCHES = {1: 2, 2: 3, 4: 3, 8: 3, 16: 3, 32: 3, 64: 3, 128: 2, 256: 1, 3: .5, 6: .5, 12: .7, 24: .7, 48: .7, 96: .5,
           20: .3, 40: .3}  # with a weight: what is heavy is measured first
FORMATS = {"f": 6, "b": 3, "c": 1, "C": .5}  # float32, bf16, and both with channels last
POPULAR = set("""resnet18 resnet34 resnet50 resnet101 vgg11 vgg16 vgg16_bn vgg19 densenet121 mobilenet_v2
mobilenet_v3_large efficientnet_b0 convnext_tiny squeezenet1_0 squeezenet1_1 alexnet googlenet shufflenet_v2_x1_0
mnasnet1_0 regnet_y_400mf wide_resnet50_2 resnext50_32x4d vit_b_16 swin_t inception_v3""".split())
OTHER = ("raft", "mvit", "s3d", "r3d", "mc3", "r2plus1d", "swin3d", "fasterrcnn", "maskrcnn", "keypointrcnn",
         "retinanet", "ssd", "fcos", "vit_h", "regnet_y_128")
SEGMENTATION = ("fcn", "deeplab", "lraspp")
MOST_PRODUCTS = 1e11
MOST_ELEMENTS = 2.5e8


def walk(model, shape, weight, found):
    """The convolutions of a model on the meta device, by geometry, with how much they weigh."""
    import torch
    from torch import nn

    def hook(module, inputs, output):
        x = inputs[0]
        if isinstance(module.padding, str):
            return
        if x.dim() == 3:
            geometry = (module.in_channels, module.out_channels, 1, x.shape[2], 1, *module.kernel_size, 1,
                        *module.stride, 0, *module.padding)
        elif isinstance(module, nn.ConvTranspose2d):
            geometry = (module.out_channels, module.in_channels, *output.shape[2:], *module.kernel_size,
                        *module.stride, *module.padding)
        else:
            geometry = (module.in_channels, module.out_channels, *x.shape[2:], *module.kernel_size, *module.stride,
                        *module.padding)
        key = (*geometry, module.dilation[0], module.groups)
        found[key] = max(found.get(key, 0), weight)

    convolutions = [m for m in model.modules() if isinstance(m, (nn.Conv1d, nn.Conv2d, nn.ConvTranspose2d))]
    hooks = [m.register_forward_hook(hook) for m in convolutions]
    try:
        model.eval()(torch.zeros(*shape, device="meta"))
    except (RuntimeError, ValueError, TypeError, AssertionError) as error:
        print(f"{type(model).__name__} at {shape}: {str(error)[:80]}")
    for one in hooks:
        one.remove()


def unet(base, depth, has_transposed):
    import torch
    from torch import nn

    def block(inputs, outputs):
        return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.ReLU(),
                             nn.Conv2d(outputs, outputs, 3, padding=1), nn.ReLU())

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            channels = [base << i for i in range(depth)]
            self.down = nn.ModuleList([block(a, b) for a, b in zip([3] + channels[:-1], channels)])
            self.widen = nn.ModuleList([nn.ConvTranspose2d(c, c // 2, 2, 2) for c in channels[:0:-1]]
                                       if has_transposed else [])
            self.up = nn.ModuleList([block(c if has_transposed else c + c // 2, c // 2) for c in channels[:0:-1]])
            self.head = nn.Conv2d(base, 1, 1)

        def forward(self, x):
            kept = []
            for part in self.down[:-1]:
                x = part(x)
                kept.append(x)
                x = nn.functional.max_pool2d(x, 2)
            x = self.down[-1](x)
            for i, part in enumerate(self.up):
                x = self.widen[i](x) if has_transposed else nn.functional.interpolate(x, scale_factor=2)
                x = part(torch.cat([x, kept.pop()], 1))
            return self.head(x)

    with torch.device("meta"):
        return UNet()


def add_models(found):
    import torch
    from torchvision import models
    names = [n for n in models.list_models() if "quant" not in n and not n.startswith(OTHER)]
    for name in names:
        is_segmentation = name.startswith(SEGMENTATION)
        options = {"weights": None, **({"weights_backbone": None} if is_segmentation else {})}
        try:
            with torch.device("meta"):
                model = models.get_model(name, **options)
        except RuntimeError:  # RegNet computes its widths with tensors
            model = models.get_model(name, **options).to("meta")
        sides = (224, 128, 160, 192, 256, 288, 320, 384, 512, 96, 64, 32) if name in POPULAR else (224,)
        for side in sides + ((299,) if "incep" in name else ()):
            weight = (6 if name in POPULAR else 2) if side == 224 else 3 if side in (128, 192, 256) else 1
            walk(model, (2, 3, side, side), weight, found)
    for base in (16, 32, 48, 64, 96, 128):
        for depth in (3, 4, 5):
            for has_transposed in (False, True):
                for side in (64, 96, 128, 192, 256, 320, 512):
                    weight = 4 if base in (32, 64) and side in (128, 256) else 2
                    walk(unet(base, depth, has_transposed), (2, 3, side, side), weight, found)


def add_shapes(found):
    def add(weight, inputs, outputs, sides, kernel, stride, padding):
        for side in sides:
            found.setdefault((inputs, outputs, side, side, kernel, kernel, stride, stride, padding, padding, 1, 1),
                             weight)

    for width in (192, 384, 512, 768, 1024, 1152, 1280):
        for patch in (14, 16, 32, 8, 4):
            sides = [s for s in (224, 256, 384, 336, 512, 196, 128, 96, 64, 32) if s % patch == 0]
            add(3, 3, width, sides, patch, patch, 0)
    for noise, width in ((100, 512), (100, 1024), (128, 512)):
        add(2, width, noise, (4,), 4, 1, 0)
    for base in (32, 64, 128):
        for a, b, side in ((8, 4, 8), (4, 2, 16), (2, 1, 32), (1, .5, 64)):
            add(3, int(base * b), int(base * a), (side, 2 * side), 4, 2, 1)
        add(3, 3, base, (32, 64, 128), 4, 2, 1)
        add(3, 1, base, (28, 32, 64), 4, 2, 1)
    for c in (64, 96, 128, 160, 192, 256, 320, 512, 640, 1280):
        sides = (8, 16, 32, 64)
        for weight, inputs, outputs in ((3, c, c), (2, c, 2 * c), (2, 2 * c, c), (2, 3 * c // 2, c)):
            add(weight, inputs, outputs, sides, 3, 1, 1)
        add(2, c, c, sides[1:], 3, 2, 1)
        add(2, c, c, sides, 1, 1, 0)
        for few in (3, 4):
            add(1, few, c, (32, 64, 128), 3, 1, 1)
            add(1, c, few, (32, 64, 128), 3, 1, 1)
    for width in (384, 512, 768):
        found[80, width, 1, 3000, 1, 3, 1, 1, 0, 1, 1, 1] = 2
        found[width, width, 1, 3000, 1, 3, 1, 2, 0, 1, 1, 1] = 2
    for samples in (16000, 32000, 48000, 160000):
        channels = 1
        for kernel, stride in ((10, 5), (3, 2), (3, 2), (3, 2), (3, 2), (2, 2), (2, 2)):
            found[channels, 512, 1, samples, 1, kernel, 1, stride, 0, 0, 1, 1] = 1
            samples = (samples - kernel) // stride + 1
            channels = 512


def add_by_lot(found):
    lot = random.Random(7)
    channels = [8, 16, 24, 32, 48, 64, 80, 96, 128, 160, 192, 256, 320, 384, 512, 768, 1024, 2048]
    sides = [4, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256]
    for _ in range(2500):
        kernel = lot.choice([3, 3, 3, 3, 1, 5, 7])
        stride = lot.choice([1, 1, 1, 2])
        key = (lot.choice(channels), lot.choice(channels), *[lot.choice(sides)] * 2, kernel, kernel, stride, stride,
               kernel // 2, kernel // 2, 1, 1)
        found.setdefault(key, 1)


def convolutions():
    """What to measure, the weightiest first: [format, batch, *geometry]."""
    found = {}
    add_models(found)
    add_shapes(found)
    add_by_lot(found)
    lot = random.Random(3)
    wanted = []
    for geometry, weight in found.items():
        inputs, outputs, h, w, kh, kw, sh, sw, ph, pw, _, groups = geometry
        if h + 2 * ph < kh or w + 2 * pw < kw:
            continue
        products = h * w * inputs * outputs * kh * kw / sh / sw / groups
        for batch, of_batch in BATCHES.items():
            elements = batch * h * w * (inputs + outputs / sh / sw)
            if batch * products > MOST_PRODUCTS or elements > MOST_ELEMENTS:
                continue
            for form, of_format in FORMATS.items():
                if (form != "f" and weight < 2) or (form in "cC" and (weight < 4 or of_batch < 2)):
                    continue
                wanted.append((lot.random() / (weight * of_batch * of_format), [form, batch, *geometry]))
    return [one for _, one in sorted(wanted)]


def measure(one):
    """Bytes of scratch in the three passes. Nothing waits for the card: the requests alone count."""
    import torch
    form, batch, inputs, outputs, h, w, kh, kw, sh, sw, ph, pw, dilation, groups = one
    kind = {"dtype": torch.float if form in "fC" else torch.bfloat16, "device": "cuda",
            "memory_format": torch.channels_last if form in "cC" else torch.contiguous_format}
    x = torch.empty(batch, inputs, h, w, **kind)
    weight = torch.empty(outputs, inputs // groups, kh, kw, **kind)
    how = ([sh, sw], [ph, pw], [dilation, dilation], False, [0, 0], groups)

    def scratch_of(run):
        torch.cuda.reset_peak_memory_stats()
        result = run()
        stats = torch.cuda.memory.memory_stats_as_nested_dict()["requested_bytes"]["all"]
        return result, stats["peak"] - stats["current"]

    aten = torch.ops.aten
    y, forward = scratch_of(lambda: aten.convolution(x, weight, None, *how))
    gradient = torch.empty_like(y)
    scratch = [forward]
    for mask in ([True, False, False], [False, True, False]):
        scratch.append(scratch_of(lambda m=mask: aten.convolution_backward(gradient, x, weight, None, *how, m))[1])
    return [*one, *y.shape[2:], *scratch]


def work(index, count, end, path, out):
    import torch
    wanted = json.loads(path.read_text())
    with out.open("w") as file:
        for one in wanted[index::count]:
            if time.time() > end:
                break
            try:
                file.write(json.dumps(measure(one)) + "\n")
            except torch.OutOfMemoryError:
                torch.cuda.empty_cache()
            except RuntimeError as error:
                print(f"{one}: {str(error)[:80]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seconds", type=float)
    parser.add_argument("-o", "--out", type=pathlib.Path, required=True)
    parser.add_argument("--worker", nargs=4, metavar=("I", "N", "END", "FOLDER"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        index, count, end, folder = arguments.worker
        work(int(index), int(count), float(end), pathlib.Path(folder) / "wanted.json", arguments.out)
        return
    end = time.time() + arguments.seconds
    wanted = convolutions()
    count = min(os.cpu_count() or 8, 16)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "wanted.json").write_text(json.dumps(wanted))
        parts = [folder / f"{i}.json" for i in range(count)]
        jobs = [subprocess.Popen([sys.executable, __file__, "0", "-o", part, "--worker", str(i), str(count), str(end),
                                  name]) for i, part in enumerate(parts)]
        for job in jobs:
            job.wait()
        lines = b"".join(part.read_bytes() for part in parts)
    arguments.out.write_bytes(lzma.compress(lines))
    print(f"{lines.count(bytes([10]))} of {len(wanted)} convolutions measured")


if __name__ == "__main__":
    main()
