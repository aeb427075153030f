-- Prints the results of wrk in one line: requests, microseconds, bytes, p50 and p99 in microseconds, errors.
done = function(summary, latency, requests)
  local e = summary.errors
  local errors = e.connect + e.read + e.write + e.status + e.timeout
  io.write(string.format("result %d %d %d %d %d %d\n", summary.requests, summary.duration, summary.bytes,
    latency:percentile(50), latency:percentile(99), errors))
end
