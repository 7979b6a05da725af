package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// A freshRig is a server whose certificates are in a directory.
type freshRig struct {
	t    *testing.T
	dir  string
	ln   net.Listener
	told chan error
}

func newFreshRig(t *testing.T) *freshRig {
	r := &freshRig{t: t, dir: t.TempDir(), told: make(chan error, 10)}
	testrig.Must(t, certificates(r.dir))
	flags := &tlsFlags{TLSCert: r.file("server-cert.pem"), TLSKey: r.file("server-key.pem"), TLSCA: r.file("ca.pem")}
	cfg, err := flags.fresh("serve", func(err error) { r.told <- err })
	testrig.Must(t, err)
	r.ln, err = tls.Listen("tcp", "127.0.0.1:0", cfg)
	testrig.Must(t, err)
	t.Cleanup(func() { _ = r.ln.Close() })
	go func() {
		for {
			c, err := r.ln.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte{1}) // which makes the handshake
			_ = c.Close()
		}
	}()
	return r
}

func (r *freshRig) file(name string) string { return filepath.Join(r.dir, name) }

// shown is the certificate that a client with that of a directory is shown, or why it is not served.
func (r *freshRig) shown(dir string) (*x509.Certificate, error) {
	r.t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "client-cert.pem"), filepath.Join(dir, "client-key.pem"))
	testrig.Must(r.t, err)
	c, err := tls.Dial("tcp", r.ln.Addr().String(),
		&tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	_, err = c.Read(make([]byte, 1))
	return c.ConnectionState().PeerCertificates[0], err
}

// wantShown wants a certificate that is in a file.
func (r *freshRig) wantShown(dir, file string) {
	r.t.Helper()
	got, err := r.shown(dir)
	testrig.Must(r.t, err)
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, file+"-cert.pem"), filepath.Join(dir, file+"-key.pem"))
	testrig.Must(r.t, err)
	if !got.Equal(pair.Leaf) {
		r.t.Errorf("%v is shown, and not what %s has", got.Subject, file)
	}
}

// replace has a file replaced by another, in one step.
func (r *freshRig) replace(from, name string) {
	r.t.Helper()
	text, err := os.ReadFile(from)
	testrig.Must(r.t, err)
	made := r.file(name + ".new")
	testrig.Must(r.t, errors.Join(os.WriteFile(made, text, 0o600), os.Rename(made, r.file(name))))
}

// TestTLSRenewed has certificate, key and authorities be replaced while a server runs: the next client meets the new
// ones. Files that cannot be used change nothing, and that is told once.
func TestTLSRenewed(t *testing.T) {
	r := newFreshRig(t)
	r.wantShown(r.dir, "server")
	next := t.TempDir()
	testrig.Must(t, certificates(next))
	r.replace(filepath.Join(next, "server-cert.pem"), "server-cert.pem") // the key is that of the old one
	for range 2 {
		if _, err := r.shown(r.dir); err != nil {
			t.Errorf("amid the renewal: %v", err)
		}
	}
	if len(r.told) != 1 {
		t.Errorf("told %d times that the files do not fit", len(r.told))
	}
	r.replace(filepath.Join(next, "server-key.pem"), "server-key.pem")
	if got, err := r.shown(r.dir); err != nil || got.SerialNumber.Cmp(leaf(t, next).SerialNumber) != 0 {
		t.Errorf("%v, %v", got, err)
	}
	r.replace(filepath.Join(next, "ca.pem"), "ca.pem")
	r.wantShown(next, "server")
	if _, err := r.shown(r.dir); err == nil {
		t.Error("who is vouched for by the old authority alone is served")
	}
	testrig.Must(t, os.Remove(r.file("ca.pem")))
	r.wantShown(next, "server")
	if len(r.told) != 2 {
		t.Errorf("told %d times", len(r.told))
	}
}

// leaf is the server's certificate in a directory.
func leaf(t *testing.T, dir string) *x509.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "server-cert.pem"), filepath.Join(dir, "server-key.pem"))
	testrig.Must(t, err)
	return pair.Leaf
}
