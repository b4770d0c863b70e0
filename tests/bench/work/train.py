"""PyTorch on the CPU: trains a small network on made-up data."""
import torch

torch.manual_seed(0)
torch.set_num_threads(2)
model = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Flatten(),
                            torch.nn.Linear(16 * 15 * 15, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
optimizer = torch.optim.AdamW(model.parameters())
inputs, labels = torch.randn(512, 3, 32, 32), torch.randint(0, 10, (512,))
for epoch in range(15):
    for start in range(0, 512, 32):
        loss = torch.nn.functional.cross_entropy(model(inputs[start:start + 32]), labels[start:start + 32])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(loss.item() >= 0)
