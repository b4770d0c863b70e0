// threads N: N threads build and drop trees, strings and hash maps. Every fourth tree goes to the next thread, which
// frees it.
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

struct Node {
    std::unique_ptr<Node> left, right;
};

static std::unique_ptr<Node> tree(int depth) {
    auto node = std::make_unique<Node>();
    if (depth > 0) {
        node->left = tree(depth - 1);
        node->right = tree(depth - 1);
    }
    return node;
}

struct Mailbox {
    std::mutex lock;
    std::vector<std::unique_ptr<Node>> trees;
};

static void work(Mailbox &mine, Mailbox &next, int rounds) {
    std::unordered_map<int, std::string> words;
    for (int i = 0; i < rounds; i++) {
        auto grown = tree(9);
        words[i % 5000] = std::string(20 + i % 200, 'x');
        if (i % 4 == 0) {
            std::lock_guard<std::mutex> hold(next.lock);
            next.trees.push_back(std::move(grown));
        }
        std::vector<std::unique_ptr<Node>> received;
        std::lock_guard<std::mutex> hold(mine.lock);
        received.swap(mine.trees);
    }
}

int main(int argc, char **argv) {
    const int count = argc > 1 ? std::atoi(argv[1]) : 2, rounds = 20000;
    std::vector<Mailbox> boxes(count);
    std::vector<std::thread> threads;
    for (int i = 0; i < count; i++)
        threads.emplace_back(work, std::ref(boxes[i]), std::ref(boxes[(i + 1) % count]), rounds);
    for (auto &thread : threads) thread.join();
}
