package stream_test

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/goiwarp/iwarp/stream"
)

// web serves over a Listener, and returns a client. With secure it is HTTP/2 over TLS.
func web(t *testing.T, r *rig, secure bool) (*http.Client, string) {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		said, _ := io.ReadAll(req.Body) // all of it, before the answer begins: HTTP/1.1 has one after the other
		_, _ = w.Write(said)
	}))
	must(t, s.Listener.Close())
	s.Listener = r.ln
	s.EnableHTTP2 = secure
	if secure {
		s.StartTLS()
		s.Client().Transport.(*http.Transport).TLSClientConfig.ServerName = "example.com" // that of its certificate, wherever it is
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	transport := s.Client().Transport.(*http.Transport)
	transport.DialContext = r.dialer.DialContext
	return s.Client(), s.URL
}

// TestHTTP runs net/http over the package, with many requests at once, and HTTP/2 over crypto/tls.
func TestHTTP(t *testing.T) {
	for name, secure := range map[string]bool{"http": false, "https": true} {
		for _, l := range layers[:2] {
			t.Run(name+" over "+l.name, func(t *testing.T) {
				t.Parallel()
				client, url := web(t, newRig(t, l, stream.Config{Ring: 1 << 16}), secure)
				var all sync.WaitGroup
				for i := range 8 {
					all.Go(func() {
						said := string(octets(100_000*i, byte(i)))
						answer, err := client.Post(url, "text/plain", strings.NewReader(said))
						if err != nil {
							t.Error(err)
							return
						}
						defer answer.Body.Close()
						got, err := io.ReadAll(answer.Body)
						if err != nil || string(got) != said || secure != (answer.ProtoMajor == 2) {
							t.Errorf("%s: %d octets of %d, %v", answer.Proto, len(got), len(said), err)
						}
					})
				}
				all.Wait()
			})
		}
	}
}

// TestTLS has the end of crypto/tls reach the other end as such.
func TestTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS() // for its certificate
	defer s.Close()
	a, b := newRig(t, layers[0], stream.Config{}).pair(t)
	client := tls.Client(a, &tls.Config{RootCAs: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "example.com"})
	server := tls.Server(b, s.TLS)
	go func() {
		writeAll(t, client, octets(500_000, 8), 70_000)
		must(t, client.CloseWrite())
	}()
	wantAll(t, server, octets(500_000, 8))
	var both sync.WaitGroup
	for _, c := range []net.Conn{client, server} {
		both.Go(func() { _ = c.Close() }) // where the other is the first, its farewell finds nobody
	}
	both.Wait()
}
