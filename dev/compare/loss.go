package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/internal/report"
	"github.com/goiwarp/iwarp/perf"
)

// A lossyLink is what iwarp perf found over a link that loses packets in both directions, and holds each back.
type lossyLink struct {
	Loss      float64       `json:"loss_percent"`
	RoundTrip time.Duration `json:"added_round_trip_ns"`
	Result    perf.Result   `json:"result"`
}

// lossyLinks are those that are measured.
func lossyLinks() (all []lossyLink) {
	for _, rtt := range []time.Duration{0, 10 * time.Millisecond, 50 * time.Millisecond} {
		for _, loss := range []float64{0, 0.1, 1} {
			all = append(all, lossyLink{Loss: loss, RoundTrip: rtt})
		}
	}
	return all
}

// duration is how long each transport is measured for bandwidth, and for latency: of 100 slices each has
// two round trips at least, and some five where the way is short: enough for a median, and not for a 99th percentile.
func (l lossyLink) duration() time.Duration { return 5*time.Second + 200*l.RoundTrip }

// lossySize is that of the Writes.
const lossySize = 64 << 10

// lossMark begins the lines of the guest's console that are for us.
const lossMark = "LOSS"

// measureLoss has iwarp perf run in the guest, whose kernel has netem.
func (c *cli) measureLoss(ctx context.Context, rec *record) error {
	out, err := inGuest(ctx, buildIwarp, lossScript, "--nvme", "--timeout", "2400")
	if err != nil {
		return err
	}
	rec.Loss, err = lossValues(out)
	return err
}

// lossScript is what the guest's shell does. The ends are in two network namespaces, and between them is a pair of
// virtual interfaces. Their packets are made no longer than the MTU, as netem loses one as a whole. Busybox's shell has
// an ip and a tc of its own, that know neither.
func lossScript(port int) string {
	var b strings.Builder
	b.WriteString(fetchIwarp(port))
	b.WriteString(`set -e
modprobe -a veth sch_netem
ip=/usr/bin/ip
sysctl -q -w net.ipv4.tcp_slow_start_after_idle=0
$ip link add near type veth peer name far
unshare -n sleep 10000 &
there="nsenter -t $! -n"
sleep 1
$ip link set far netns $!
for end in near far; do
	[ $end = near ] && in= address=192.0.2.1 || in=$there address=192.0.2.2
	$in $ip link set $end gso_max_segs 1
	$in $ip addr add $address/24 dev $end
	$in $ip link set $end up
done
$there ./iwarp perf --listen 192.0.2.2:7000 >/dev/null 2>&1 &
sleep 3
`)
	for i, l := range lossyLinks() {
		netem := fmt.Sprintf("root netem limit 10000 delay %dus loss %v%%", (l.RoundTrip / 2).Microseconds(), l.Loss)
		fmt.Fprintf(&b, "/usr/bin/tc qdisc replace dev near %s\n$there /usr/bin/tc qdisc replace dev far %s\n",
			netem, netem)
		fmt.Fprintf(&b, "echo %s %d; ./iwarp perf --connect 192.0.2.2:7000 --json --keep-disturbed --op Write --size %d --duration %v | tr -d '\\n'; echo\n",
			lossMark, i, lossySize, l.duration())
	}
	return b.String()
}

// lossValues reads the console.
func lossValues(console []byte) ([]lossyLink, error) {
	all := lossyLinks()
	console = bytes.ReplaceAll(console, []byte("\r"), nil)
	for i := range all {
		_, after, _ := bytes.Cut(console, fmt.Appendf(nil, "%s %d\n", lossMark, i))
		var said perf.Report
		if err := json.NewDecoder(bytes.NewReader(after[max(0,
			bytes.IndexByte(after, '{')):])).Decode(&said); err != nil {
			return nil, fmt.Errorf("%v %% of loss and %v: %w: %.500s", all[i].Loss, all[i].RoundTrip, err, after)
		}
		if len(said.Results) != 1 {
			return nil, fmt.Errorf("%d results, want 1", len(said.Results))
		}
		all[i].Result = said.Results[0]
	}
	return all, nil
}

// lossTable has a row for each link. Slices that were disturbed count, so that package perf does not judge the ratios.
func lossTable(rec *record) string {
	var b strings.Builder
	b.WriteString(report.MarkdownHeading("added to the round trip", "lost, each way", "iwarp", "plain TCP",
		"bandwidth, ratio", "CPU for a Write, ratio", "half a round trip, ratio"))
	for _, l := range rec.Loss {
		r := l.Result
		ratio := func(key string, pairs int) string {
			return spreadOf{r.Ratio(key), r.Quartiles[key][0], r.Quartiles[key][1]}.text(pairs)
		}
		b.WriteString(report.MarkdownRow(l.RoundTrip.String(), strconv.FormatFloat(l.Loss, 'g', -1, 64)+" %",
			short(r.BWAverage)+" MiB/s", short(r.TCP.BWAverage)+" MiB/s",
			ratio("ratio_bw", r.BWPairs), ratio("ratio_cpu", r.BWPairs), ratio("ratio_lat", r.LatPairs)))
	}
	return b.String()
}
