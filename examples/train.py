"""A PyTorch training loop on the CPU that keeps more than it should: the loss history holds every batch's features."""
import os

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.ReLU(), torch.nn.Linear(4096, 1024))
optimizer = torch.optim.Adam(model.parameters())
history = []

for step in range(12):
    batch = torch.randn(256, 1024)
    features = model(batch)
    loss = (features - batch).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history.append((loss.item(), features.detach()))

print(f"loss {history[0][0]:.3f} -> {history[-1][0]:.3f}", flush=True)
os._exit(0)  # ends like a killed server, without cleaning up; the ledger has everything nevertheless
