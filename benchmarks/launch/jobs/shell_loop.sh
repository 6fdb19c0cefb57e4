#!/bin/sh
# Two workers as one would start them by hand. PORT_0 and PORT_1 are free ports.
pids=""
for i in 0 1; do
    TF_CONFIG="{\"cluster\": {\"worker\": [\"127.0.0.1:$PORT_0\", \"127.0.0.1:$PORT_1\"]}, \"task\": {\"type\": \"worker\", \"index\": $i}}" \
        python train.py > "$BENCH_MARKS/worker-$i.log" 2>&1 &
    pids="$pids $!"
done
code=0
for pid in $pids; do
    wait "$pid" || code=$?
done
exit $code
