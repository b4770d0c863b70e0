"""Plain Python: objects, dictionaries, JSON there and back, sorting, regular expressions."""
import json
import re


class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y


total = 0
for round_number in range(12):
    points = [Point(i, i * 7 % 1000) for i in range(40_000)]
    points.sort(key=lambda p: (p.y, p.x))
    text = json.dumps([{"x": p.x, "y": p.y, "name": f"point {p.x}"} for p in points])
    back = json.loads(text)
    total += len({item["name"] for item in back}) + len(re.findall(r"point \d*7\d*", text))
print(total)
