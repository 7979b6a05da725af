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

	"golang.org/x/net/nettest"

	"github.com/goiwarp/iwarp/stream"
)

// TestConn runs the tests of golang.org/x/net/nettest over every lower layer.
func TestConn(t *testing.T) {
	for _, l := range layers {
		t.Run(l.name, func(t *testing.T) {
			r := newRig(t, l, stream.Config{})
			nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
				dialed, accepted := r.pair(t)
				return dialed, accepted, func() { closeBoth(dialed, accepted) }, nil
			})
		})
	}
	t.Run("memory", func(t *testing.T) {
		nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
			dialed, accepted := memoryPair(t, stream.Config{})
			return dialed, accepted, func() { closeBoth(dialed, accepted) }, nil
		})
	})
}

// closeBoth closes both ends at the same time, as Close waits for the peer.
func closeBoth(a, b net.Conn) {
	var both sync.WaitGroup
	for _, c := range []net.Conn{a, b} {
		both.Go(func() { _ = c.Close() })
	}
	both.Wait()
}

// web starts a web server over a Listener, and returns a client. With secure both speak HTTP/2 over TLS.
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
		// The certificate is for this name, at any address.
		s.Client().Transport.(*http.Transport).TLSClientConfig.ServerName = "example.com"
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	transport := s.Client().Transport.(*http.Transport)
	transport.DialContext = r.dialer.DialContext
	return s.Client(), s.URL
}

// TestHTTP runs many requests of net/http at once, and HTTP/2 over crypto/tls.
func TestHTTP(t *testing.T) {
	for name, secure := range map[string]bool{"http": false, "https": true} {
		for _, l := range layers[:2] {
			t.Run(name+" over "+l.name, func(t *testing.T) {
				t.Parallel()
				client, url := web(t, newRig(t, l, stream.Config{Ring: 1 << 16}), secure)
				var all sync.WaitGroup
				for i := range 8 {
					all.Go(func() {
						said := string(randomBytes(100_000*i, byte(i)))
						answer, err := client.Post(url, "text/plain", strings.NewReader(said))
						if err != nil {
							t.Error(err)
							return
						}
						defer answer.Body.Close()
						got, err := io.ReadAll(answer.Body)
						if err != nil || string(got) != said || secure != (answer.ProtoMajor == 2) {
							t.Errorf("%s: %d bytes of %d, %v", answer.Proto, len(got), len(said), err)
						}
					})
				}
				all.Wait()
			})
		}
	}
}

// TestTLS checks that the end of a TLS stream reaches the peer.
func TestTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS() // for its certificate
	defer s.Close()
	a, b := newRig(t, layers[0], stream.Config{}).pair(t)
	roots := s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	client := tls.Client(a, &tls.Config{RootCAs: roots, ServerName: "example.com"})
	server := tls.Server(b, s.TLS)
	go func() {
		writeAll(t, client, randomBytes(500_000, 8), 70_000)
		must(t, client.CloseWrite())
	}()
	wantAll(t, server, randomBytes(500_000, 8))
	var both sync.WaitGroup
	for _, c := range []net.Conn{client, server} {
		both.Go(func() { _ = c.Close() }) // where the other is the first, its farewell finds nobody
	}
	both.Wait()
}
