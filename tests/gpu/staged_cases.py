"""Cases m01 to m49: each cause on several models."""
import copy
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F

from staged_models import (
    MIB, real, whole, Vit, ResNet, Pairs, Reader, UNet, Graph, Painter, Critic, pictures, text, translate, denoise,
    clicks, network, duel, vit, resnet, words, pairs, unet, shop, graph, players)
from staged_table import case


@case("graph-kept", "forward", 1.6)
def m01(fault):
    "ResNet: a second criterion of each step is kept in a history with its graph"
    model, opt = resnet()
    history = []
    for _ in range(60 if fault else 4):
        pictures(model, opt, classes=200)
        smooth = F.cross_entropy(model(real(32, 3, 224, 224)), whole(200, 32), label_smoothing=0.1)
        history.append(smooth if fault else smooth.item())


@case("graph-kept", "forward", 1.6)
def m02(fault):
    "ViT: a queue of embeddings that were never detached"
    model, opt = vit()
    queue = []
    for _ in range(60 if fault else 4):
        pictures(model, opt)
        z = F.normalize(model.tokens(real(16, 3, 224, 224)).mean(1), dim=1)
        queue.append(z if fault else z.detach())


@case("graph-kept", "forward or backward", 1.3)
def m03(fault):
    "LSTM: the state is carried from window to window without detach, with retain_graph"
    model, opt = words()
    state = None
    for _ in range(60 if fault else 4):
        x = whole(8000, 16, 129)
        out, state = model(x[:, :-1], state)
        loss = F.cross_entropy(out.flatten(0, 1), x[:, 1:].flatten())
        loss.backward(retain_graph=fault)
        if not fault:
            state = tuple(s.detach() for s in state)
        opt.zero_grad()


@case("graph-kept", "forward or backward", 1.5)
def m04(fault):
    "GAN: the critic's losses kept, with retain_graph"
    painter, critic, opt_p, opt_c = players()
    log = []
    for _ in range(60 if fault else 4):
        fake = painter(real(128, 128))
        loss = F.softplus(critic(fake)).mean()
        loss.backward(retain_graph=True)
        opt_c.step(), opt_c.zero_grad()
        log.append(loss if fault else loss.item())
        gain = -critic(fake).mean()
        gain.backward()
        opt_p.step(), opt_p.zero_grad(), opt_c.zero_grad()


@case("graph-kept", "forward", 1.4)
def m05(fault):
    "Encoder-decoder: losses of eight micro-batches added, one backward"
    model, opt = pairs()
    for _ in range(3):
        total = 0.0
        for _ in range(16):
            a, b = whole(4000, 16, 64), whole(4000, 16, 64)
            loss = F.cross_entropy(model(a, b).flatten(0, 1), b.flatten()) / 16
            if fault:
                total = total + loss
            else:
                loss.backward()
        if fault:
            total.backward()
        opt.step(), opt.zero_grad()


@case("graph-kept", "forward", 1.6, late=True)
def m06(fault):
    "Graph net: the loss of each step is added up for the report, the graph is retained"
    model, opt = graph()
    total = 0.0
    for _ in range(60 if fault else 4):
        loss = model(real(20_000, 256), whole(20_000, 2, 100_000)).square().mean()
        loss.backward(retain_graph=fault)
        opt.step(), opt.zero_grad()
        total += loss if fault else loss.item()


@case("tensors-kept", "forward", 1.4)
def m07(fault):
    "Encoder-decoder: detached predictions of all batches kept on the GPU"
    model, opt = pairs()
    seen = []
    for _ in range(120 if fault else 4):
        a, b = whole(4000, 16, 64), whole(4000, 16, 64)
        out = model(a, b)
        F.cross_entropy(out.flatten(0, 1), b.flatten()).backward()
        opt.step(), opt.zero_grad()
        seen.append(out.detach() if fault else out.argmax(-1).cpu())


@case("tensors-kept", "forward", 1.2)
def m08(fault):
    "U-Net: sampling keeps every intermediate picture"
    model = UNet().cuda().eval()
    trail = []
    with torch.no_grad():
        x = real(32, 3, 128, 128)
        for step in range(200 if fault else 4):
            x = x - 0.01 * model(x, torch.full((32, 1), step / 200, device="cuda"))
            trail.append(x if fault else None)


@case("tensors-kept", "forward", 1.3)
def m09(fault):
    "ViT: features of a whole data set gathered on the GPU under inference_mode"
    model = Vit().cuda().eval()
    bank = {}
    with torch.inference_mode():
        for i in range(150 if fault else 4):
            z = model.tokens(real(32, 3, 224, 224))
            bank[i] = z if fault else z.cpu()


@case("second-model", "second model")
def m10(fault):
    "U-Net: a list of trials keeps each trial's model and optimizer"
    trials = []
    for _ in range(8 if fault else 1):
        model, opt = unet(width=192)
        for _ in range(2):
            denoise(model, opt, batch=2)
        if fault:
            trials.append((model, opt))


@case("second-model", "second model")
def m11(fault):
    "Encoder-decoder: a frozen teacher, larger than the student, is built beside it"
    model, opt = pairs()
    for _ in range(3):
        translate(model, opt)
    if fault:
        teacher = Pairs(width=1024, layers=12).cuda().eval()
        for _ in range(3):
            translate(model, opt)
            teacher(whole(4000, 2, 64), whole(4000, 2, 64))


@case("second-model", "second model")
def m12(fault):
    "GAN: a fresh pair of players while the old pair lives"
    old = players(160)
    for _ in range(3):
        duel(*old, batch=32)
    if fault:
        new = players(160)
        for _ in range(3):
            duel(*new, batch=32)


@case("grad-in-evaluation", "evaluation")
def m13(fault):
    "ResNet: scoring without no_grad, in larger batches"
    model, opt = resnet()
    for _ in range(2):
        for _ in range(3):
            pictures(model, opt, classes=200)
        model.eval()
        right = 0
        with torch.set_grad_enabled(fault):
            for _ in range(3):
                right += (model(real(160, 3, 224, 224)).argmax(1) == whole(200, 160)).sum().item()
        model.train()


@case("grad-in-evaluation", "evaluation")
def m14(fault):
    "Encoder-decoder: greedy decoding after training, without no_grad"
    model, opt = pairs()
    for _ in range(4):
        translate(model, opt)
    model.eval()
    source, target = whole(4000, 48, 96), whole(4000, 48, 1)
    with torch.set_grad_enabled(fault):
        for _ in range(40):
            nxt = model(source, target)[:, -1:].argmax(-1)
            target = torch.cat([target, nxt], 1)


@case("grad-in-evaluation", "evaluation", 3.6)
def m15(fault):
    "Graph net: a program that only predicts, without no_grad"
    model = Graph().cuda().eval()
    scores = []
    with torch.set_grad_enabled(fault):
        for _ in range(5):
            out = model(real(15_000, 256), whole(15_000, 2, 100_000))
            scores.append(out.mean().item())


@case("copy-of-weights", "between steps", 1.02)
def m16(fault):
    "ViT: a deepcopy of the model as its moving average"
    model, opt = vit(width=1024, depth=8, heads=8)
    for _ in range(3):
        pictures(model, opt, 2)
    if fault:
        average = copy.deepcopy(model)
        for _ in range(3):
            pictures(model, opt, 2)
            with torch.no_grad():
                for p, q in zip(average.parameters(), model.parameters()):
                    p.lerp_(q, 0.01)


@case("copy-of-weights", "between steps", 1.02)
def m17(fault):
    "ResNet: swa_utils.AveragedModel"
    model, opt = resnet(widths=(128, 256, 512, 1024))
    for _ in range(3):
        pictures(model, opt, 4, classes=200)
    if fault:
        swa = torch.optim.swa_utils.AveragedModel(model)
        for _ in range(4):
            pictures(model, opt, 4, classes=200)
            swa.update_parameters(model)


@case("copy-of-weights", "saving", 1.02)
def m18(fault):
    "LSTM: weights and momentum cloned on the GPU before they are written"
    model, opt = words(vocabulary=30_000, width=1024)
    for _ in range(3):
        text(model, opt, 2, 64)
    if fault:
        pack = {k: v.clone() for k, v in model.state_dict().items()}
        moments = {i: s["momentum_buffer"].clone() for i, s in enumerate(opt.state.values())}
        torch.save((pack, moments), os.devnull)


@case("copy-of-weights", "between steps", 1.05)
def m19(fault):
    "Recommender: the best three sets of weights kept on the GPU"
    model, opt = shop()
    best = []
    for _ in range(6):
        for _ in range(2):
            clicks(model, opt)
        if fault:
            best = (best + [copy.deepcopy(model.state_dict())])[-3:]


@case("checkpoint-on-gpu", "first step after loading", 1.02)
def m20(fault):
    "U-Net: a checkpoint loaded to the GPU is still held while training goes on"
    model, opt = unet(width=256)
    denoise(model, opt, 4, 32)
    path = tempfile.mktemp()
    torch.save(dict(model=model.state_dict(), opt=opt.state_dict()), path)
    del model, opt
    torch.cuda.empty_cache()
    model, opt = unet(width=256)
    state = torch.load(path, map_location="cuda" if fault else "cpu")
    os.unlink(path)
    model.load_state_dict(state["model"])
    opt.load_state_dict(state["opt"])
    for _ in range(3):
        denoise(model, opt, 4, 32)


@case("checkpoint-on-gpu", "loading", 1.01, 20)
def m21(fault):
    "Encoder-decoder: the best checkpoint is loaded to the GPU beside model and optimizer"
    model, opt = pairs(width=1024, layers=6)
    translate(model, opt, 2)
    path = tempfile.mktemp()
    torch.save(dict(model=model.state_dict(), opt=opt.state_dict()), path)
    for _ in range(2):
        translate(model, opt, 2)
    state = torch.load(path, map_location=torch.device("cuda:0") if fault else "cpu")
    os.unlink(path)
    model.load_state_dict(state["model"])


@case("exception-holds-tensors", "retry", 1.3)
def m22(fault):
    "ResNet: too large a batch fails; the error is kept and half the batch is tried"
    model, opt = resnet()
    pictures(model, opt, 32, classes=200)
    if not fault:
        return
    errors, batch = [], 128
    while batch >= 24:
        try:
            pictures(model, opt, batch, classes=200)
            break
        except torch.OutOfMemoryError as error:
            errors.append(error)
            batch = batch * 2 // 3
    if batch < 24:
        raise errors[-1]


@case("exception-holds-tensors", "retry", 1.3)
def m23(fault):
    "ViT: the smaller batch is tried inside the except branch"
    model, opt = vit()
    pictures(model, opt, 24)
    if fault:
        try:
            pictures(model, opt, 96)
        except torch.OutOfMemoryError:
            pictures(model, opt, 24)


@case("attention-matrix", "forward", 2.0)
def m24(fault):
    "ViT: explicit softmax over the patches of a large picture"
    model = Vit(explicit=fault).cuda()
    opt = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        pictures(model, opt, 1, 1024)


@case("attention-matrix", "forward", 2.5)
def m25(fault):
    "MultiheadAttention hands back the weights of each head"
    model = Reader(weights=fault).cuda()
    opt = torch.optim.Adam(model.parameters())
    for _ in range(3):
        model(real(4, 2048, 256))[0].square().mean().backward()
        opt.step(), opt.zero_grad()


@case("logits", "loss", 2.0, 300)
def m26(fault):
    "LSTM over 120,000 words"
    model, opt = words(vocabulary=120_000 if fault else 20_000, width=256)
    for _ in range(3):
        text(model, opt, 24, 96)


@case("logits", "loss", 1.5, 300)
def m27(fault):
    "Encoder-decoder in bf16 autocast over 150,000 words, cross-entropy in fp32"
    n = 150_000 if fault else 20_000
    model = Pairs(n, 256, 2).cuda()
    opt = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        a, b = whole(n, 16, 64), whole(n, 16, 128)
        with torch.autocast("cuda", torch.bfloat16):
            loss = F.cross_entropy(model(a, b).flatten(0, 1).float(), b.flatten())
        loss.backward()
        opt.step(), opt.zero_grad()


@case("larger-batch", "forward or backward", 1.1)
def m28(fault):
    "ResNet: the rest of the data is joined to the last batch"
    model, opt = resnet()
    for n in [32, 32, 32, 32, 32] + ([96] if fault else []):
        pictures(model, opt, n, classes=200)


@case("larger-batch", "forward or backward", 1.1)
def m29(fault):
    "LSTM: one longer text among usual ones"
    model, opt = words()
    for n in [128, 110, 128, 90, 128] + ([300] if fault else []):
        text(model, opt, 16, n)


@case("larger-batch", "forward or backward", 1.1)
def m30(fault):
    "Graph net: one graph with many more edges"
    model, opt = graph()
    for n in [100_000, 90_000, 100_000, 95_000] + ([260_000] if fault else []):
        network(model, opt, 20_000, n)


@case("input-size", "forward", 1.3)
def m31(fault):
    "U-Net: pictures of 640 x 640 in a batch of two from the first step"
    model, opt = unet()
    for _ in range(3):
        denoise(model, opt, 2, 640 if fault else 256)


@case("input-size", "forward", 1.5)
def m32(fault):
    "ResNet: scans of 2048 x 2048, one at a time"
    model, opt = resnet()
    for _ in range(3):
        pictures(model, opt, 1, 2048 if fault else 512, 200)


@case("optimizer-state", "optimizer step", 1.0, 0)
def m33(fault):
    "Recommender: Adam makes two tables of the big table's size in its first step"
    model, opt = shop(opt=torch.optim.Adam if fault else torch.optim.SGD)
    for _ in range(3):
        clicks(model, opt)


@case("optimizer-state", "second step", 1.0, 30)
def m34(fault):
    "U-Net: the first step fits only because AdamW has no state yet"
    model, opt = unet(width=160)
    for _ in range(4 if fault else 1):
        denoise(model, opt, 8, 64)


@case("optimizer-state", "optimizer step", 1.0, 10)
def m35(fault):
    "GAN: the second player's Adam has no room for its state"
    p, c = Painter(192).cuda(), Critic(192).cuda()
    opt_c = torch.optim.Adam(c.parameters())
    opt_p = torch.optim.Adam(p.parameters()) if fault else torch.optim.SGD(p.parameters(), 0.1)
    for _ in range(3):
        duel(p, c, opt_p, opt_c, 8)


@case("optimizer-state", "second step", 1.0, 30)
def m36(fault):
    "ViT: equal batches; the second step finds the state of the first"
    model, opt = vit(width=768, depth=6, heads=8)
    for _ in range(4 if fault else 1):
        pictures(model, opt, 32)


@case("pending-frees", "steady", 1.2)
def m37(fault):
    "ResNet inference: inputs copied on a side stream, recorded on a busy one"
    model = ResNet().cuda().eval()
    side, weight = torch.cuda.Stream(), real(6144, 6144)
    with torch.no_grad():
        for _ in range(120 if fault else 4):
            x = real(256, 3, 224, 224)
            model(x)
            if fault:
                x.record_stream(side)
                with torch.cuda.stream(side):
                    for _ in range(20):
                        torch.mm(weight, weight)
            del x


@case("private-pool", "any", 1.6)
def m38(fault):
    "A CUDA graph for each batch size, each with a pool of its own"
    model = ResNet().cuda().eval()
    graphs = []
    with torch.no_grad():
        x = real(64, 3, 224, 224)
        for _ in range(3):
            model(x)
        for n in (range(64, 8, -4) if fault else ()):
            g, part = torch.cuda.CUDAGraph(), x[:n].clone()
            with torch.cuda.graph(g):
                out = model(part)
            graphs.append((g, part, out))


@case("private-pool", "any", 1.5)
def m39(fault):
    "A MemPool that held a large table keeps its memory for itself"
    model, opt = vit()
    pool = torch.cuda.MemPool()
    for _ in range(2):
        pictures(model, opt)
    if fault:
        with torch.cuda.use_mem_pool(pool):
            table = [real(64, MIB) for _ in range(4)]
        del table
        for n in (32, 40, 48, 56, 64):
            pictures(model, opt, n)


@case("small-blocks-pin-segments", "allocation", 1.0, 40)
def m40(fault):
    "Three rows of each batch are made for a table, one of the three stays"
    rows = [[real(160, 1024) for _ in range(3)] for _ in range(700)]
    kept = [row[1] for row in rows if fault]
    del rows
    table = [real(16, MIB) for _ in range(12)]


@case("growing-sizes", "any", 1.6)
def m41(fault):
    "A cache of keys and values that is made longer by cat for each word"
    keys = real(8, 16, 256, 64)
    for _ in range(3000 if fault else 2):
        keys = torch.cat([keys, real(8, 16, 8, 64)], 2)
        (real(8, 16, 1, 64) @ keys.transpose(2, 3)).softmax(-1) @ keys
        if keys.numel() * 4 > 500 * MIB:
            break


@case("none", "-")
def m42(fault):
    "LSTM: texts sorted by length, each batch a little longer than the last"
    model, opt = words()
    for n in range(40, 400, 9):
        text(model, opt, 16, n)


@case("fragmentation", "any", 0.76, 0)
def m43(fault):
    "Tables of many sizes come and go; the survivors split the free memory"
    torch.manual_seed(3)
    held = {}
    sizes = torch.randint(12, 90, (400,)).tolist()
    if not fault:
        return real(1000, MIB // 4).sum().item()
    for i, size in enumerate(sizes):
        held[i] = torch.empty(size * MIB, dtype=torch.uint8, device="cuda")
        while sum(t.numel() for t in held.values()) > 620 * MIB:
            held.pop(list(held)[int(torch.randint(0, len(held), (1,)))])


@case("none", "-")
def m44(fault):
    "U-Net: pictures of changing size"
    model, opt = unet(width=48)
    for side in (256, 200, 168, 232, 184, 248, 216, 152, 240, 192, 256, 176, 208, 224, 160) * 2:
        denoise(model, opt, 4, side)


@case("capacity", "forward or backward", 2.0)
def m45(fault):
    "ViT: the batch is too large from the first step"
    model, opt = vit()
    for _ in range(3):
        pictures(model, opt, 128 if fault else 16)


@case("capacity", "model", 3.0)
def m46(fault):
    "Encoder-decoder: the weights alone do not fit"
    pairs(width=1024 if fault else 512, layers=12 if fault else 3)


@case("device-imbalance", "forward", 1.2)
def m47(fault):
    "Encoder-decoder in DataParallel over two devices: outputs and loss gather on the first"
    model = Pairs(vocabulary=16_000, width=256).cuda()
    opt = torch.optim.Adam(model.parameters())
    net = nn.DataParallel(model, [0, 1])
    for _ in range(3):
        n = 64 if fault else 16
        a, b = whole(16_000, n, 64), whole(16_000, n, 64)
        F.cross_entropy(net(a, b).flatten(0, 1), b.flatten()).backward()
        opt.step(), opt.zero_grad()


@case("library-workspace", "forward", 1.2)
def m48(fault):
    "Matrix products on many streams: cuBLAS takes a workspace for each"
    weight = real(4096, 4096)
    for _ in range(3):
        weight @ weight
    if fault:
        outs = []
        for _ in range(40):
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                outs.append((weight @ weight).mean())


@case("none", "-")
def m49(fault):
    "Convolutions in benchmark mode: cuDNN tries plans with large workspaces"
    torch.backends.cudnn.benchmark = True
    model = nn.Sequential(*[nn.Conv3d(a, b, 5, padding=2) for a, b in ((8, 32), (32, 32), (32, 8))]).cuda()
    opt = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        model(real(2, 8, 48, 64, 64)).square().mean().backward()
        opt.step(), opt.zero_grad()
