"""Models that are not a GPT, how one is made with its optimizer, and one step of each."""
import torch
import torch.nn as nn
import torch.nn.functional as F

MIB = 2**20


def real(*shape):
    return torch.randn(*shape, device="cuda")


def whole(below, *shape):
    return torch.randint(0, below, shape, device="cuda")


class Block(nn.Module):
    def __init__(self, width, heads, explicit):
        super().__init__()
        self.heads, self.explicit = heads, explicit
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def mix(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        if self.explicit:
            y = (q @ k.transpose(-2, -1) * (c // self.heads) ** -0.5).softmax(-1) @ v
        else:
            y = F.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).reshape(b, n, c))

    def forward(self, x):
        x = x + self.mix(self.norm1(x))
        return x + self.narrow(F.gelu(self.wide(self.norm2(x))))


class Vit(nn.Module):
    def __init__(self, width=384, depth=6, heads=6, classes=100, explicit=False):
        super().__init__()
        self.embed = nn.Conv2d(3, width, 16, 16)
        self.blocks = nn.ModuleList(Block(width, heads, explicit) for _ in range(depth))
        self.head = nn.Linear(width, classes)

    def tokens(self, x):
        x = self.embed(x).flatten(2).transpose(1, 2)
        for block in self.blocks:
            x = block(x)
        return x

    def forward(self, x):
        return self.head(self.tokens(x).mean(1))


class Residual(nn.Module):
    def __init__(self, a, b, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b)
        self.conv2, self.bn2 = nn.Conv2d(b, b, 3, 1, 1, bias=False), nn.BatchNorm2d(b)
        self.skip = nn.Conv2d(a, b, 1, stride, bias=False) if (a, stride) != (b, 1) else nn.Identity()

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.skip(x))


class ResNet(nn.Module):
    def __init__(self, widths=(64, 128, 256, 512), classes=200):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, widths[0], 7, 2, 3), nn.BatchNorm2d(widths[0]), nn.ReLU(), nn.MaxPool2d(2))
        pairs = zip((widths[0],) + widths[:-1], widths)
        self.body = nn.Sequential(*[nn.Sequential(Residual(a, b, 2 if a != b else 1), Residual(b, b, 1)) for a, b in pairs])
        self.fc = nn.Linear(widths[-1], classes)

    def forward(self, x):
        return self.fc(self.body(self.stem(x)).mean((2, 3)))


class Words(nn.Module):
    def __init__(self, vocabulary=8000, width=512, layers=2):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, width, layers, batch_first=True)
        self.out = nn.Linear(width, vocabulary)

    def forward(self, x, state=None):
        y, state = self.lstm(self.embed(x), state)
        return self.out(y), state


class Pairs(nn.Module):
    def __init__(self, vocabulary=4000, width=512, layers=3):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.net = nn.Transformer(width, 8, layers, layers, 4 * width, batch_first=True)
        self.out = nn.Linear(width, vocabulary)

    def forward(self, source, target):
        return self.out(self.net(self.embed(source), self.embed(target)))


class Reader(nn.Module):
    """Layers of nn.MultiheadAttention that can hand back the weights."""
    def __init__(self, width=256, layers=4, weights=False):
        super().__init__()
        self.weights = weights
        self.layers = nn.ModuleList(nn.MultiheadAttention(width, 8, batch_first=True) for _ in range(layers))

    def forward(self, x):
        maps = []
        for layer in self.layers:
            y, w = layer(x, x, x, need_weights=self.weights, average_attn_weights=False)
            x = x + y
            maps.append(w)
        return x, maps


class UNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.time = nn.Linear(1, 4 * width)
        self.inp = nn.Conv2d(3, width, 3, 1, 1)
        self.down1, self.down2 = Residual(width, 2 * width, 2), Residual(2 * width, 4 * width, 2)
        self.mid = Residual(4 * width, 4 * width, 1)
        self.up2, self.up1 = Residual(6 * width, 2 * width, 1), Residual(3 * width, width, 1)
        self.out = nn.Conv2d(width, 3, 3, 1, 1)

    def forward(self, x, t):
        a = self.inp(x)
        b = self.down1(a)
        c = self.mid(self.down2(b) + self.time(t)[:, :, None, None])
        b = self.up2(torch.cat([F.interpolate(c, scale_factor=2), b], 1))
        a = self.up1(torch.cat([F.interpolate(b, scale_factor=2), a], 1))
        return self.out(a)


class Shop(nn.Module):
    """A recommender: one big table and a small tower."""
    def __init__(self, items=400_000, width=128):
        super().__init__()
        self.table = nn.Embedding(items, width)
        self.tower = nn.Sequential(nn.Linear(8 * width, 1024), nn.ReLU(), nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 1))

    def forward(self, ids):
        return self.tower(self.table(ids).flatten(1)).squeeze(1)


class Graph(nn.Module):
    def __init__(self, width=256, layers=4):
        super().__init__()
        self.msg = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(layers))
        self.upd = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(layers))

    def forward(self, nodes, edges):
        for msg, upd in zip(self.msg, self.upd):
            m = F.relu(msg(torch.cat([nodes[edges[0]], nodes[edges[1]]], 1)))
            nodes = F.relu(upd(torch.cat([nodes, torch.zeros_like(nodes).index_add_(0, edges[1], m)], 1)))
        return nodes


class Painter(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        w = width
        self.net = nn.Sequential(nn.ConvTranspose2d(128, 8 * w, 4), nn.BatchNorm2d(8 * w), nn.ReLU(),
                                 *[m for a, b in ((8, 4), (4, 2), (2, 1)) for m in
                                   (nn.ConvTranspose2d(a * w, b * w, 4, 2, 1), nn.BatchNorm2d(b * w), nn.ReLU())],
                                 nn.ConvTranspose2d(w, 3, 4, 2, 1), nn.Tanh())

    def forward(self, z):
        return self.net(z[:, :, None, None])


class Critic(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        w = width
        self.net = nn.Sequential(nn.Conv2d(3, w, 4, 2, 1), nn.LeakyReLU(.2),
                                 *[m for a, b in ((1, 2), (2, 4), (4, 8)) for m in
                                   (nn.Conv2d(a * w, b * w, 4, 2, 1), nn.BatchNorm2d(b * w), nn.LeakyReLU(.2))],
                                 nn.Conv2d(8 * w, 1, 4))

    def forward(self, x):
        return self.net(x).flatten()


# Their steps ----------------------------------------------------------------------------------------------------------


def pictures(model, opt, batch=32, side=224, classes=100):
    x, y = real(batch, 3, side, side), whole(classes, batch)
    opt.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    opt.step()
    return loss.item()


def text(model, opt, batch=16, length=128):
    x = whole(model.embed.num_embeddings, batch, length + 1)
    out, _ = model(x[:, :-1])
    loss = F.cross_entropy(out.flatten(0, 1), x[:, 1:].flatten())
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    opt.zero_grad(set_to_none=True)


def translate(model, opt, batch=16, length=64):
    n = model.embed.num_embeddings
    a, b = whole(n, batch, length), whole(n, batch, length + 1)
    out = model(a, b[:, :-1])
    loss = F.cross_entropy(out.reshape(-1, n), b[:, 1:].reshape(-1))
    opt.zero_grad()
    loss.backward()
    opt.step()


def denoise(model, opt, batch=8, side=128):
    x, t = real(batch, 3, side, side), torch.rand(batch, 1, device="cuda")
    noise = torch.randn_like(x)
    loss = F.mse_loss(model(x + t[:, :, None, None] * noise, t), noise)
    loss.backward()
    opt.step()
    opt.zero_grad(set_to_none=True)


def clicks(model, opt, batch=16384):
    ids = whole(model.table.num_embeddings, batch, 8)
    loss = F.binary_cross_entropy_with_logits(model(ids), torch.rand(batch, device="cuda"))
    loss.backward()
    opt.step()
    opt.zero_grad()


def network(model, opt, nodes=20_000, edges=100_000):
    out = model(real(nodes, 256), whole(nodes, 2, edges))
    loss = out.square().mean()
    loss.backward()
    opt.step()
    opt.zero_grad()


def duel(painter, critic, opt_p, opt_c, batch=128):
    fake = painter(real(batch, 128))
    loss = F.softplus(critic(fake.detach())).mean() + F.softplus(-critic(real(batch, 3, 64, 64))).mean()
    opt_c.zero_grad()
    loss.backward()
    opt_c.step()
    loss = F.softplus(-critic(fake)).mean()
    opt_p.zero_grad()
    loss.backward()
    opt_p.step()


def vit(**shape):
    model = Vit(**shape).cuda()
    return model, torch.optim.AdamW(model.parameters())


def resnet(**shape):
    model = ResNet(**shape).cuda()
    return model, torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)


def words(**shape):
    model = Words(**shape).cuda()
    return model, torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)


def pairs(**shape):
    model = Pairs(**shape).cuda()
    return model, torch.optim.Adam(model.parameters(), 1e-4)


def unet(**shape):
    model = UNet(**shape).cuda()
    return model, torch.optim.AdamW(model.parameters(), 1e-4)


def shop(opt=torch.optim.Adagrad, **shape):
    model = Shop(**shape).to("cuda")
    return model, opt(model.parameters(), lr=0.01)


def graph(**shape):
    model = Graph(**shape).cuda()
    return model, torch.optim.Adam(model.parameters())


def players(width=64):
    p, c = Painter(width).cuda(), Critic(width).cuda()
    return p, c, torch.optim.Adam(p.parameters(), 2e-4), torch.optim.Adam(c.parameters(), 2e-4)
