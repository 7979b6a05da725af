package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/goiwarp/iwarp/perf"
)

// freePort returns a port of loopback that nobody listens on.
func freePort() (int, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer ln.Close()
	return ln.Addr().(*net.TCPAddr).Port, nil
}

const loopback = "127.0.0.1"

// otherPrograms are those of others, each with so much time for a turn.
func otherPrograms(limit time.Duration) []*program {
	return []*program{iperf3(limit), ucx(limit), libfabric(limit)}
}

// iperf3 writes as fast as TCP takes it. It has no ping-pong.
func iperf3(limit time.Duration) *program {
	return &program{
		label: "iperf3", file: "iperf3", pkg: "iperf3", limit: limit,
		command: func(w work, port int, cc string) (server, client []string, ok bool) {
			n := 256 << 20
			if w.size < 1<<10 {
				n = w.size << 16
			}
			client = []string{"-c", loopback, "-p", strconv.Itoa(port), "-J", "-l", strconv.Itoa(w.size),
				"-n", strconv.Itoa(n)}
			if cc != "" {
				client = append(client, "-C", cc)
			}
			return []string{"-s", "-1", "-p", strconv.Itoa(port)}, client, w.quantity == perf.Bandwidth
		},
		parse: parseIperf3,
		lacks: func(work) string { return "it has no ping-pong" },
	}
}

// parseIperf3 reads how many bytes of what was sent arrived in which time.
func parseIperf3(w work, out []byte) (float64, error) {
	var report struct {
		End struct {
			Received struct {
				BitsPerSecond float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		}
		Error string
	}
	if err := json.Unmarshal(out, &report); err != nil {
		return 0, err
	}
	if report.Error != "" || report.End.Received.BitsPerSecond <= 0 {
		return 0, fmt.Errorf("iperf3 reports no bandwidth: %.80q", report.Error)
	}
	return report.End.Received.BitsPerSecond / 8 / float64(w.size), nil
}

// ucx polls, as UCX does by design: on a machine with too few CPUs its average is far from
// its median. Some runs stand still for up to two seconds, whatever their length, so that a
// rate of few messages is that of the pause.
func ucx(limit time.Duration) *program {
	tests := map[string][]string{
		"latency-64":   {"-t", "ucp_am_lat", "-n", "2000", "-w", "200"},
		"latency-64k":  {"-t", "ucp_put_lat", "-n", "300", "-w", "30"},
		"rate-64":      {"-t", "ucp_am_bw", "-n", "20000", "-w", "2000"},
		"bandwidth-1m": {"-t", "ucp_put_bw", "-n", "1000", "-w", "100"},
	}
	return &program{
		label: "UCX", file: "ucx_perftest", pkg: "ucx-utils", limit: limit,
		env: []string{"UCX_TLS=tcp,self", "UCX_NET_DEVICES=lo"},
		command: func(w work, port int, _ string) (server, client []string, ok bool) {
			test, ok := tests[w.key]
			server = []string{"-p", strconv.Itoa(port)}
			client = append([]string{loopback, "-p", strconv.Itoa(port), "-f", "-v", "-s",
				strconv.Itoa(w.size)}, test...)
			return server, client, ok
		},
		parse: parseUCX,
		lacks: func(work) string { return "ucx_perftest prints percentiles and an average, and not the least" },
	}
}

// parseUCX reads the last two lines, names of columns and a row of values.
func parseUCX(w work, out []byte) (float64, error) {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) < 2 {
		return 0, errors.New("ucx_perftest prints no table")
	}
	names, row := strings.Split(lines[len(lines)-2], ","), strings.Split(lines[len(lines)-1], ",")
	column, scale := "50.0_percentile_lat", 1e3
	if w.quantity == perf.Bandwidth {
		column, scale = "overall_mr", 1
	}
	for i, name := range names {
		if strings.TrimSpace(name) == column && i < len(row) {
			x, err := strconv.ParseFloat(strings.TrimSpace(row[i]), 64)
			return x * scale, err
		}
	}
	return 0, fmt.Errorf("ucx_perftest prints no %s", column)
}

// libfabric has a ping-pong. It is not known to end on every machine. Debian 12 has none of the tools of its fabtests,
// such as fi_msg_bw.
func libfabric(limit time.Duration) *program {
	return &program{
		label: "libfabric", file: "fi_pingpong", pkg: "libfabric-bin", limit: limit,
		env: []string{"FI_TCP_IFACE=lo"},
		command: func(w work, port int, _ string) (server, client []string, ok bool) {
			common := []string{"-p", "tcp", "-e", "msg", "-I", "1000", "-S", strconv.Itoa(w.size)}
			server = append([]string{"-B", strconv.Itoa(port)}, common...)
			client = append(append([]string{"-P", strconv.Itoa(port)}, common...), loopback)
			return server, client, w.quantity == perf.Latency && w.key != least
		},
		parse: parseFabric,
		lacks: func(w work) string {
			if w.key == least {
				return "fi_pingpong prints an average alone"
			}
			return "fi_pingpong is all that Debian 12 has (libfabric-bin; fabtests is no package of it)"
		},
	}
}

// parseFabric reads the column usec/xfer, the average of half a round trip.
func parseFabric(_ work, out []byte) (float64, error) {
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	for i, name := range bytes.Fields(lines[0]) {
		if string(name) != "usec/xfer" {
			continue
		}
		if fields := bytes.Fields(lines[len(lines)-1]); len(lines) > 1 && i < len(fields) {
			x, err := strconv.ParseFloat(string(fields[i]), 64)
			return x * 1e3, err
		}
	}
	return 0, errors.New("fi_pingpong prints no usec/xfer")
}
