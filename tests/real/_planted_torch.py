"""A program that saves a small model, loads it again, and plants tensors of unique sizes. It prints a line when all
tensors exist. When its standard input ends, the program ends while all tensors are still alive."""
import os, sys

import torch

WEIGHTS, PLANTED = 7_000_003, 30_000_019


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = torch.nn.Parameter(torch.empty(WEIGHTS)) # LINE model


def save_model(path):
    torch.save({"weights": torch.ones(WEIGHTS, dtype=torch.float64)}, path)


def load_model(path):
    state = torch.load(path) # LINE load
    return Small(), state


def plant():
    return torch.empty(PLANTED, dtype=torch.uint8) # LINE plant


def work(tensor):
    return torch.cat([tensor, tensor]) # LINE work


def main():
    save_model("small.pt")
    held = [load_model("small.pt"), plant()]
    held.append(work(held[1]))
    print("planted", flush=True)
    sys.stdin.read()
    os._exit(0)


main()
