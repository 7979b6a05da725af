package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/internal/rping/message"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

// TestDashboardDrawn has a Prometheus scrape an iwarp serve under traffic, and wants data of every expression of the
// dashboard: more than zero, but of what does not happen there. Grafana itself is not run.
func TestDashboardDrawn(t *testing.T) {
	if !testrig.Everything() {
		t.Skip("it takes a while: IWARP_ALL=1 has it")
	}
	if _, err := exec.LookPath("prometheus"); err != nil {
		testrig.Lacks(t, "there is no prometheus here: "+err.Error())
	}
	ctx := testrig.Within(t)
	program := filepath.Join(t.TempDir(), "iwarp")
	said, err := output(ctx, "", "go", "build", "-o", program, "../cmd/iwarp")
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	served := start(t, regexp.MustCompile(`(?s)metrics at http://(\S+)/metrics\n.*listening on (\S+)\n`), program,
		"serve", "127.0.0.1:0", "--metrics", "127.0.0.1:0")
	host, port, err := net.SplitHostPort(served[2])
	testrig.Must(t, err)
	start(t, regexp.MustCompile("ping data"), program, "rping", "-c", "-v", "-a", host, "-p", port)
	asked := scraper(t, served[1])
	missing := readDashboard(t).expressions("20s")
	for len(missing) > 0 {
		trouble(ctx, t, served[2])
		missing = asked.without(ctx, t, missing)
		if ctx.Err() != nil {
			t.Fatalf("these give no data, or nothing but zero:\n%s", strings.Join(missing, "\n"))
		}
	}
}

// start starts a program that runs until the end of the test, and returns what it says by then, as an expression has
// it.
func start(t *testing.T, says *regexp.Regexp, name string, args ...string) []string {
	t.Helper()
	r, w, err := os.Pipe()
	testrig.Must(t, err)
	cmd := exec.CommandContext(testrig.Within(t), name, args...)
	cmd.Stdout, cmd.Stderr = w, w
	testrig.Must(t, cmd.Start())
	w.Close()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // how it ends is not the matter here
		r.Close()
	})
	said, lines := "", bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		said += line
		if found := says.FindStringSubmatch(said); found != nil {
			go func() { _, _ = io.Copy(io.Discard, lines) }()
			return found
		}
		if err != nil {
			t.Fatalf("%s: %v: %s", name, err, said)
		}
	}
}

// A prometheus answers queries at an address.
type prometheusAt string

// scraper starts a Prometheus that scrapes an address each second.
func scraper(t *testing.T, target string) prometheusAt {
	t.Helper()
	dir := t.TempDir()
	config := fmt.Sprintf("global: {scrape_interval: 1s}\nscrape_configs: [{job_name: iwarp, static_configs: [{targets: ['%s']}]}]\n", target)
	testrig.Must(t, os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600))
	at := start(t, regexp.MustCompile(`msg="Listening on" address=(\S+)`), "prometheus",
		"--web.listen-address=127.0.0.1:0",
		"--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"))
	return prometheusAt(at[1])
}

// quiet are metrics that traffic over loopback leaves at zero: a series of zeros is all that can be wanted of them.
var quiet = regexp.MustCompile(`iwarp_(ahead_\w+|oddities|nudges|held_requests|events_dropped|aligned_writes|startups_fallback|startups_evicted)_`)

// without returns the expressions that give no data yet.
func (p prometheusAt) without(ctx context.Context, t *testing.T, expressions []string) (missing []string) {
	t.Helper()
	for _, expression := range expressions {
		values := p.query(ctx, t, expression)
		has := quiet.MatchString(expression) && len(values) > 0
		for _, v := range values {
			has = has || v > 0 && !math.IsInf(v, 0)
		}
		if !has {
			missing = append(missing, expression)
		}
	}
	return missing
}

// query returns the values of an expression now, one for each series.
func (p prometheusAt) query(ctx context.Context, t *testing.T, expression string) (values []float64) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		"http://"+string(p)+"/api/v1/query?query="+url.QueryEscape(expression), nil)
	testrig.Must(t, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil && ctx.Err() != nil {
		return nil // the caller tells of that
	}
	testrig.Must(t, err)
	defer response.Body.Close()
	if response.StatusCode == http.StatusServiceUnavailable {
		return nil // it is starting
	}
	var answer struct {
		Status, Error string
		Data          struct {
			Result []struct{ Value [2]any }
		}
	}
	testrig.Must(t, json.NewDecoder(response.Body).Decode(&answer))
	if answer.Status == "error" && response.StatusCode == http.StatusBadRequest {
		t.Fatalf("%s: %s", expression, answer.Error)
	}
	for _, series := range answer.Data.Result {
		text, _ := series.Value[1].(string)
		value, err := strconv.ParseFloat(text, 64)
		testrig.Must(t, err)
		values = append(values, value)
	}
	return values
}

// trouble does what a server counts beside traffic: a startup that is none, a request for no service, and Terminates in
// both directions.
func trouble(ctx context.Context, t *testing.T, addr string) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err == nil {
		_, _ = io.WriteString(conn, "GET / HTTP/1.0\r\n\r\n")
		conn.Close()
	}
	dialer := iwarp.Dialer{MPA: mpa.Offer{PrivateData: []byte("of no service")}}
	if qp, err := dialer.Dial(ctx, "tcp", addr); err == nil {
		qp.Close()
		t.Error("a request for no service was accepted")
	}
	wrong(ctx, t, addr, func(qp *iwarp.QP, mr *iwarp.MR) error { // into memory that is not the server's
		_, err := qp.Write(ctx, mr.Slice(0, 1), iwarp.Remote{STag: 0xBAD00000})
		return err
	})
	// of which the server reads, and is told that it must not
	wrong(ctx, t, addr, func(qp *iwarp.QP, mr *iwarp.MR) error {
		return qp.Send(ctx, mr.Slice(0, message.Len))
	})
}

// wrong connects to rping, does something, and waits until the connection has ended by that.
func wrong(ctx context.Context, t *testing.T, addr string, do func(*iwarp.QP, *iwarp.MR) error) {
	t.Helper()
	qp, err := iwarp.Dial(ctx, "tcp", addr)
	if err != nil {
		return // once the test's time is over
	}
	defer qp.Close()
	advert := message.Advert{STag: 0xBAD00000, Length: 64}
	mr, err := qp.PD().Register(advert.Append(nil), iwarp.LocalWrite)
	testrig.Must(t, err)
	_ = do(qp, mr)
	select {
	case <-qp.Done():
	case <-ctx.Done():
	}
}
