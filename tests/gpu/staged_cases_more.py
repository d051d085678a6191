"""Cases m50 to m75: healthy runs, and the causes once more in other programs."""
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from staged_models import (
    real, whole, Block, Vit, ResNet, Words, Pairs, Reader, pictures, text, translate, denoise, clicks,
    network, duel, vit, resnet, words, pairs, unet, shop, graph, players)
from staged_table import case


@case("none", "-")
def m50(fault):
    "ViT: training with scoring under no_grad between"
    model, opt = vit()
    for _ in range(2):
        for _ in range(3):
            pictures(model, opt)
        model.eval()
        with torch.no_grad():
            right = sum((model(real(128, 3, 224, 224)).argmax(1) == whole(100, 128)).sum().item() for _ in range(3))
        model.train()


@case("none", "-")
def m51(fault):
    "ResNet: fp16 autocast with a scaler"
    model, opt = resnet()
    scaler = torch.amp.GradScaler()
    for _ in range(6):
        with torch.autocast("cuda", torch.float16):
            loss = F.cross_entropy(model(real(64, 3, 224, 224)), whole(200, 64))
        scaler.scale(loss).backward()
        scaler.step(opt), scaler.update(), opt.zero_grad()


@case("none", "-")
def m52(fault):
    "ViT: every block checkpointed"
    model, opt = vit(depth=8)
    for _ in range(5):
        x = model.embed(real(48, 3, 224, 224)).flatten(2).transpose(1, 2)
        for block in model.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        F.cross_entropy(model.head(x.mean(1)), whole(100, 48)).backward()
        opt.step(), opt.zero_grad()


@case("none", "-")
def m53(fault):
    "LSTM: texts of many lengths, SGD with momentum"
    model, opt = words()
    for n in (128, 64, 100, 128, 30, 128, 77, 120):
        text(model, opt, 16, n)


@case("none", "-")
def m54(fault):
    "Generation with a cache of keys and values made once at full length"
    block, heads, width = Block(512, 8, False).cuda().half(), 8, 64
    cache = torch.zeros(2, 16, heads, 512, width, device="cuda", dtype=torch.half)
    x = real(16, 1, 512).half()
    with torch.inference_mode():
        for i in range(120):
            q, k, v = block.qkv(x).view(16, 1, 3, heads, width).permute(2, 0, 3, 1, 4)
            cache[0, :, :, i:i + 1], cache[1, :, :, i:i + 1] = k, v
            y = F.scaled_dot_product_attention(q, cache[0, :, :, :i + 1], cache[1, :, :, :i + 1])
            x = x + block.out(y.transpose(1, 2).reshape(16, 1, 512))
            x = x + block.narrow(F.gelu(block.wide(x)))


@case("none", "-")
def m55(fault):
    "ResNet: inference only"
    model = ResNet().cuda().eval()
    with torch.inference_mode():
        found = [model(real(64, 3, 224, 224)).argmax(1).tolist() for _ in range(8)]


@case("none", "-")
def m56(fault):
    "GAN: two optimizers, both healthy"
    game = players()
    for _ in range(6):
        duel(*game)


@case("none", "-")
def m57(fault):
    "Graph net: graphs of many sizes"
    model, opt = graph()
    for n in (20_000, 12_000, 26_000, 18_000, 25_000, 15_000):
        network(model, opt, n, 5 * n)


@case("none", "-")
def m58(fault):
    "Recommender: gradients accumulated over four batches, moving average kept on the CPU"
    model, opt = shop(opt=torch.optim.Adam)
    average = {k: v.cpu() for k, v in model.state_dict().items()}
    for _ in range(3):
        for _ in range(4):
            ids = whole(400_000, 4096, 8)
            (model(ids).square().mean() / 4).backward()
        opt.step(), opt.zero_grad()
        for k, v in model.state_dict().items():
            average[k].lerp_(v.cpu(), 0.1)


@case("tensors-kept", "any", 1.3)
def m59(fault):
    "Recommender: scores of each batch are kept on the GPU for a curve"
    model, opt = shop(items=50_000)
    scores = []
    for _ in range(300 if fault else 4):
        clicks(model, opt, 4096)
        with torch.no_grad():
            part = model.table(whole(50_000, 4096)).mul(2)
        scores.append(part if fault else part.mean().item())


@case("graph-kept", "forward", 2.0)
def m60(fault):
    "MultiheadAttention: the maps of each step are kept for a picture"
    model = Reader(weights=True).cuda()
    opt = torch.optim.Adam(model.parameters())
    maps = []
    for _ in range(40 if fault else 3):
        y, w = model(real(4, 512, 256))
        y.square().mean().backward()
        opt.step(), opt.zero_grad()
        z, w = model(real(4, 512, 256))
        maps.append(w[-1].sum() if fault else w[-1].sum().item())


@case("second-model", "second model", 1.1)
def m61(fault):
    "Three architectures compared in one process, all kept in a table"
    table = {}
    for name, build, work in (("a", lambda: resnet(widths=(128, 256, 512, 1024)), lambda m, o: pictures(m, o, 4)),
                              ("b", lambda: vit(width=768, depth=8, heads=8), lambda m, o: pictures(m, o, 4)),
                              ("c", lambda: unet(width=160), lambda m, o: denoise(m, o, 2, 64))):
        pair = build()
        for _ in range(2):
            work(*pair)
        if fault:
            table[name] = pair


@case("grad-in-evaluation", "evaluation", 1.3)
def m62(fault):
    "GAN: a sheet of samples drawn from the painter, without no_grad"
    game = players()
    for _ in range(3):
        duel(*game)
    with torch.set_grad_enabled(fault):
        sheet = game[0](real(512, 128)).mul(0.5).cpu()


@case("copy-of-weights", "between steps", 1.02)
def m63(fault):
    "Graph net: slow weights and an anchor, lists of cloned parameters"
    model, opt = graph(width=1536, layers=4)
    x, e = real(500, 1536), whole(500, 2, 2000)
    slow = []
    for i in range(6):
        model(x, e).square().mean().backward()
        opt.step(), opt.zero_grad()
        if fault and i > 1:
            slow.append([p.detach().clone() for p in model.parameters()])


@case("checkpoint-on-gpu", "first step after loading", 1.0, 0)
def m64(fault):
    "Recommender: yesterday's weights read to the card, copied into the model, and held"
    model, opt = shop()
    clicks(model, opt)
    path = tempfile.mktemp()
    torch.save(model.state_dict(), path)
    before = torch.load(path, map_location="cuda:0" if fault else "cpu", weights_only=True)
    os.unlink(path)
    model.load_state_dict(before)
    for _ in range(3):
        clicks(model, opt)


@case("exception-holds-tensors", "retry", 1.2)
def m65(fault):
    "LSTM: a table of failures by batch size keeps what was thrown"
    model, opt = words()
    text(model, opt, 16, 128)
    failures = {}
    for n in (64, 48, 32, 16) if fault else ():
        try:
            text(model, opt, n, 128)
            break
        except torch.OutOfMemoryError as error:
            failures[n] = error
    if len(failures) == 4:
        raise failures[16]


@case("attention-matrix", "forward", 2.0)
def m66(fault):
    "Scores with a bias by distance, softmax in fp32, under autocast"
    linear, out = nn.Linear(512, 1536).cuda(), nn.Linear(512, 512).cuda()
    opt = torch.optim.AdamW([*linear.parameters(), *out.parameters()])
    for n in (1024, 1024, 1024) if not fault else (4096,):
        x, far = real(1, n, 512), torch.arange(n, device="cuda")
        with torch.autocast("cuda", torch.bfloat16):
            q, k, v = linear(x).view(1, n, 3, 8, 64).permute(2, 0, 3, 1, 4)
            s = q @ k.transpose(-1, -2) / 8 - 0.1 * (far[:, None] - far).abs()
            y = out((s.float().softmax(-1).to(v.dtype) @ v).transpose(1, 2).reshape(1, n, 512))
        y.float().square().mean().backward()
        opt.step(), opt.zero_grad()


@case("logits", "loss", 2.5)
def m67(fault):
    "ViT over 200,000 people: the head's output"
    n = 200_000 if fault else 20_000
    model = Vit(width=256, depth=2, heads=4, classes=n).cuda()
    opt = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        pictures(model, opt, 1024, 32, n)


@case("larger-batch", "forward or backward", 1.1)
def m68(fault):
    "Encoder-decoder: one batch of long texts"
    model, opt = pairs()
    for n in [64, 60, 64, 48, 64] + ([200] if fault else []):
        translate(model, opt, 16, n)


@case("input-size", "forward", 1.5)
def m69(fault):
    "Volumes of 160 x 160 x 160 in a 3-d convolutional net"
    net = nn.Sequential(nn.Conv3d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv3d(16, 16, 3, padding=1), nn.ReLU(),
                        nn.Conv3d(16, 1, 1)).cuda()
    opt = torch.optim.Adam(net.parameters())
    n = 160 if fault else 64
    for _ in range(3):
        F.mse_loss(net(real(1, 1, n, n, n)), real(1, 1, n, n, n)).backward()
        opt.step(), opt.zero_grad()


@case("capacity", "forward or backward", 3.0)
def m70(fault):
    "Graph net: the first graph is far too large"
    model, opt = graph()
    for _ in range(3):
        network(model, opt, 100_000 if fault else 10_000, 500_000 if fault else 50_000)


@case("device-imbalance", "any", 1.15)
def m71(fault):
    "ResNet in DataParallel: large maps gather on the first device"
    body = nn.Sequential(*list(ResNet().children())[:1]).cuda()
    net = nn.DataParallel(body, [0, 1])
    opt = torch.optim.SGD(body.parameters(), 0.1)
    for _ in range(3):
        maps = net(real(160 if fault else 48, 3, 224, 224))
        (maps.float() - maps.float().mean()).square().mean().backward()
        opt.step(), opt.zero_grad()


@case("none", "-")
def m72(fault):
    "Pictures and words matched: two towers, one loss"
    see, read = ResNet(classes=256).cuda(), Words(width=256).cuda()
    opt = torch.optim.Adam([*see.parameters(), *read.embed.parameters(), *read.lstm.parameters()])
    for _ in range(5):
        a = F.normalize(see(real(32, 3, 160, 160)), dim=1)
        y, _ = read.lstm(read.embed(whole(8000, 32, 32)))
        b = F.normalize(y[:, -1], dim=1)
        F.cross_entropy(a @ b.t() / 0.07, torch.arange(32, device="cuda")).backward()
        opt.step(), opt.zero_grad()


@case("none", "-")
def m73(fault):
    "A store of past observations, filled in place, and a net that learns from it"
    store, net = torch.zeros(20_000, 2048, device="cuda"), nn.Sequential(nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 8)).cuda()
    opt = torch.optim.Adam(net.parameters())
    for i in range(10):
        with torch.no_grad():
            store[i * 256:(i + 1) * 256] = real(256, 2048)
            net(store[i * 256:(i + 1) * 256]).argmax(1).tolist()
        net(store[whole((i + 1) * 256, 512)]).square().mean().backward()
        opt.step(), opt.zero_grad()


@case("none", "-")
def m74(fault):
    "Encoder-decoder in DataParallel over two devices"
    model = Pairs().cuda()
    net, opt = nn.DataParallel(model, [0, 1]), torch.optim.Adam(model.parameters())
    for _ in range(4):
        a, b = whole(4000, 16, 48), whole(4000, 16, 48)
        F.cross_entropy(net(a, b).flatten(0, 1), b.flatten()).backward()
        opt.step(), opt.zero_grad()


@case("none", "-")
def m75(fault):
    "LSTM: losses are gathered as numbers, the state is carried on, detached"
    model, opt = words()
    state, seen = None, []
    for _ in range(8):
        x = whole(8000, 16, 65)
        out, state = model(x[:, :-1], state)
        loss = F.cross_entropy(out.flatten(0, 1), x[:, 1:].flatten())
        loss.backward()
        opt.step(), opt.zero_grad()
        state = tuple(s.detach() for s in state)
        seen.append(loss.item())
