"""Times of recorded CUDA work with cold caches, by two clocks.

  replay  ninfer-bench's: 512 MiB are written, 512 MiB of another buffer read,
          then one graph is replayed between two events
  graph   that of bench/results/h200-peers.csv: one graph holds every sample,
          each of 256 MiB written, 256 MiB read, event, work, event

Both leave the L2 cache full of clean lines of something else, and both
include what the events cost: measure `nothing` to see how much that is.
"""

import torch

EVICTED_BYTES = {"replay": 512 << 20, "graph": 256 << 20}
UNCOUNTED = 3


def nothing():
    """The least that a stream can be asked to run."""
    torch.cuda._sleep(0)


def summarize(samples):
    """The figures of bench/ColdTimer.h, by the same rule."""
    ordered = sorted(samples)

    def at(part):
        return ordered[int(part * (len(ordered) - 1) + 0.5)]

    return {
        "median_us": round(at(0.5), 3),
        "min_us": round(ordered[0], 3),
        "p95_us": round(at(0.95), 3),
        "spread_percent": round(100 * (at(0.75) - at(0.25)) / at(0.5), 3),
    }


class ColdClock:
    def __init__(self, kind):
        self.kind = kind
        words = EVICTED_BYTES[kind] // 4
        self.written = torch.empty(words, dtype=torch.int32, device="cuda")
        self.read = torch.ones(words, dtype=torch.int32, device="cuda")
        self.seen = torch.empty((), dtype=torch.int32, device="cuda")

    def evict(self):
        self.written.zero_()
        torch.amax(self.read, dim=0, out=self.seen)

    def time(self, work, samples):
        """Figures of `work`, which queues on the current stream and is called
        outside of a capture first."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(UNCOUNTED):
                self.evict()
                work()
        torch.cuda.synchronize()
        if self.kind == "replay":
            return summarize(self.replays(work, samples, stream))
        return summarize(self.one_graph(work, samples, stream))

    def replays(self, work, samples, stream):
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            work()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in "ab")
        times = []
        with torch.cuda.stream(stream):
            for _ in range(UNCOUNTED + samples):
                self.evict()
                start.record()
                graph.replay()
                end.record()
                stream.synchronize()
                times.append(start.elapsed_time(end) * 1e3)
        return times[UNCOUNTED:]

    def one_graph(self, work, samples, stream):
        def event():
            return torch.cuda.Event(enable_timing=True, external=True)

        pairs = [(event(), event()) for _ in range(UNCOUNTED + samples)]
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for start, end in pairs:
                self.evict()
                start.record()
                work()
                end.record()
        graph.replay()
        torch.cuda.synchronize()
        times = [start.elapsed_time(end) * 1e3 for start, end in pairs]
        return times[UNCOUNTED:]
