"""A usual training run with a data set, a DataLoader whose workers fork, a model and an optimizer. It leaks a tensor of
64 MiB."""
import ctypes

import torch

torch.manual_seed(1)
torch.set_num_threads(1) # with two, three of 120 runs had other losses on a busy machine, without memstow
ROWS, WIDTH = 4096, 4096 # a data set of 64 MiB


class Rows(torch.utils.data.Dataset):
    def __init__(self):
        self.rows = torch.randn(ROWS, WIDTH)

    def __len__(self):
        return ROWS

    def __getitem__(self, i):
        return self.rows[i], self.rows[i].sum()


def main():
    loader = torch.utils.data.DataLoader(Rows(), batch_size=256, num_workers=2, multiprocessing_context="fork")
    model = torch.nn.Sequential(torch.nn.Linear(WIDTH, 256), torch.nn.ReLU(), torch.nn.Linear(256, 1))
    optimizer = torch.optim.AdamW(model.parameters())
    for epoch in range(2):
        for rows, sums in loader:
            loss = torch.nn.functional.mse_loss(model(rows)[:, 0], sums)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: {loss.item():.4f}", flush=True)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(torch.ones(16 << 20)))


main()
