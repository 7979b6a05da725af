package main

import (
	"context"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/sparse"
	"github.com/goiwarp/iwarp/internal/testrig"
)

// announced passes on the address that a server prints.
type announced chan string

func (a announced) Write(b []byte) (int, error) {
	if at := regexp.MustCompile(`127\.0\.0\.1:\d+`).Find(b); at != nil {
		a <- string(at)
	}
	return len(b), nil
}

// TestFailedStartups has strangers come whose startups fail: the log has few records of them, which count all.
func TestFailedStartups(t *testing.T) {
	const strangers = 300
	var log testrig.Buffer
	at := make(announced, 1)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- execute(ctx, []string{"serve", "127.0.0.1:0"}, streams{at, &log}) }()
	addr := <-at
	for range strangers {
		conn, err := new(net.Dialer).DialContext(testrig.Within(t), "tcp", addr)
		testrig.Must(t, err)
		_, err = conn.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
		testrig.Must(t, err)
		_, _ = io.Copy(io.Discard, conn) // until it is turned away
		testrig.Must(t, conn.Close())
	}
	stop()
	testrig.Must(t, <-ended)
	records := strings.Count(log.String(), "startup failed")
	sum := records
	for _, found := range regexp.MustCompile(sparse.LeftOut+`=(\d+)`).FindAllStringSubmatch(log.String(), -1) {
		n, err := strconv.Atoi(found[1])
		testrig.Must(t, err)
		sum += n
	}
	if records == 0 || records > strangers/5 || sum != strangers {
		t.Errorf("%d records of %d startups:\n%s", records, sum, log.String())
	}
}
