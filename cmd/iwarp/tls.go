package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/network"
	"github.com/goiwarp/iwarp/internal/wording"
)

// tlsFlags have connections go through TLS.
type tlsFlags struct {
	TLS         bool   `name:"tls" help:"Connect by TLS. The other options of TLS imply it. Who listens has it by --tls-cert."`
	TLSCert     string `name:"tls-cert" placeholder:"FILE" help:"Certificate to show, in PEM, followed by those that vouch for it. Who listens needs one for TLS."`
	TLSKey      string `name:"tls-key" placeholder:"FILE" help:"Its private key, in PEM (default: it is in the file of the certificate)."`
	TLSCA       string `name:"tls-ca" placeholder:"FILE" help:"Certificates, in PEM, that have to vouch for the peer's. Who connects takes the system's by default; who listens asks its peers for a certificate only if this is given."`
	TLSName     string `name:"tls-name" placeholder:"NAME" help:"Name that the certificate of who listens must have (default: the host that is connected to)."`
	TLSInsecure bool   `name:"tls-insecure" help:"Connect to whoever shows whatever certificate: encrypted, but with anybody."`

	// staleTLS, if it is set, is told of files that have changed and cannot be used. Without it standard error is.
	staleTLS func(error)
}

// stale tells of such files.
func (f *tlsFlags) stale(err error) {
	if f.staleTLS != nil {
		f.staleTLS(err)
		return
	}
	fmt.Fprintf(os.Stderr, "iwarp: %s: what it had before is used on\n", oneLine(err))
}

// given is an option of TLS that was given, or empty.
func (f *tlsFlags) given() string {
	switch {
	case f.TLSCert != "":
		return "--tls-cert"
	case f.TLSKey != "":
		return "--tls-key"
	case f.TLSCA != "":
		return "--tls-ca"
	}
	return f.givenToConnect()
}

// givenToConnect is one that only who connects has.
func (f *tlsFlags) givenToConnect() string {
	switch {
	case f.TLS:
		return "--tls"
	case f.TLSName != "":
		return "--tls-name"
	case f.TLSInsecure:
		return "--tls-insecure"
	}
	return ""
}

// hideToConnect leaves out of the help of serve, which only listens, what it refuses, with a reason that an unknown
// flag would not have.
func hideToConnect(k *kong.Kong) error {
	for _, command := range k.Model.Children {
		if command.Name != "serve" {
			continue
		}
		for _, f := range command.Flags {
			f.Hidden = f.Hidden || f.Name == "tls" || f.Name == "tls-name" || f.Name == "tls-insecure"
		}
	}
	return nil
}

// checkTLS refuses options that cannot be together, or have no effect.
func (f *tlsFlags) checkTLS(command string, listens bool, over *network.Network) error {
	option := f.given()
	switch {
	case option == "":
		return nil
	case !over.Sockets:
		return usage("%s: %s: TLS is over the TCP of the system only (--network tcp)", command, option)
	case listens && f.givenToConnect() != "":
		return usage("%s: %s: it is for who connects; who listens has TLS by --tls-cert", command, f.givenToConnect())
	case listens && f.TLSCert == "":
		return usage("%s: %s: who listens needs a certificate for TLS (--tls-cert)", command, option)
	case f.TLSKey != "" && f.TLSCert == "":
		return usage("%s: --tls-key: there is no --tls-cert", command)
	case f.TLSInsecure && (f.TLSCA != "" || f.TLSName != ""):
		return usage("%s: --tls-insecure: it looks at no certificate, so that --tls-ca and --tls-name have no effect",
			command)
	}
	return nil
}

// config is what both ends have; nil is no TLS.
func (f *tlsFlags) config(command string) (*tls.Config, *x509.CertPool, error) {
	if f.given() == "" {
		return nil, nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS13}
	if f.TLSCert != "" {
		pair, err := f.pair()
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", command, err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	pool, err := f.pool(command)
	return cfg, pool, err
}

// pair is the certificate with its key.
func (f *tlsFlags) pair() (pair tls.Certificate, err error) {
	cert, err := os.ReadFile(f.TLSCert)
	if err != nil {
		return pair, fmt.Errorf("--tls-cert: %w%s",
			err, wording.If(errors.Is(err, fs.ErrNotExist), ": name the PEM file of the certificate", ""))
	}
	key, option := cert, "--tls-cert"
	if f.TLSKey != "" {
		option = "--tls-cert and --tls-key"
		if key, err = os.ReadFile(f.TLSKey); err != nil {
			return pair, fmt.Errorf("--tls-key: %w", err)
		}
	} else if bytes.Contains(cert, []byte("-----BEGIN CERTIFICATE-----")) &&
		!bytes.Contains(cert, []byte("PRIVATE KEY-----")) {
		return pair, fmt.Errorf("--tls-cert: %s has a certificate without its key, which is in another file: name that by --tls-key", f.TLSCert)
	}
	if pair, err = tls.X509KeyPair(cert, key); err != nil {
		err = fmt.Errorf("%s: %w", option, err)
	}
	return pair, err
}

// pool are the certificates of --tls-ca, or nil.
func (f *tlsFlags) pool(command string) (*x509.CertPool, error) {
	if f.TLSCA == "" {
		return nil, nil
	}
	text, err := os.ReadFile(f.TLSCA)
	if err != nil {
		return nil, fmt.Errorf("%s: --tls-ca: %w", command, err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s: --tls-ca: %s has no certificate in PEM", command, f.TLSCA)
	}
	return pool, nil
}

// server is the configuration of who listens; nil is no TLS.
func (f *tlsFlags) server(command string) (*tls.Config, error) {
	cfg, pool, err := f.config(command)
	if cfg == nil || err != nil {
		return nil, err
	}
	if pool != nil {
		cfg.ClientCAs, cfg.ClientAuth = pool, tls.RequireAndVerifyClientCert
	}
	return cfg, nil
}

// client is the configuration of who connects to an address; nil is no TLS.
func (f *tlsFlags) client(command, addr string) (*tls.Config, error) {
	cfg, pool, err := f.config(command)
	if cfg == nil || err != nil {
		return nil, err
	}
	cfg.RootCAs, cfg.ServerName, cfg.InsecureSkipVerify = pool, f.TLSName, f.TLSInsecure
	if cfg.ServerName == "" {
		cfg.ServerName, _, err = net.SplitHostPort(addr)
	}
	return cfg, err
}

// listenSockets listens on the system's TCP, through TLS if that is asked for, and taps what passes inside it if there
// is a recording.
func (f *tlsFlags) listenSockets(ctx context.Context, command, addr string, r *recording) (net.Listener, error) {
	cfg, err := f.fresh(command, f.stale)
	if err != nil {
		return nil, err
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if cfg != nil {
		ln = secureListener{tls.NewListener(ln, cfg), ln.(syscall.Conn)}
	}
	if r != nil {
		ln = capture.TapListener(ln, r.w)
	}
	return ln, nil
}

// listenOver listens over any network, through TLS if that is asked for.
func (f *tlsFlags) listenOver(ctx context.Context, command, addr string, over *network.Network,
	cfg *iwarp.ListenConfig) (*iwarp.Listener, error) {
	if !over.Sockets {
		return over.Listen(ctx, addr, cfg)
	}
	ln, err := f.listenSockets(ctx, command, addr, nil)
	if err != nil {
		return nil, err
	}
	return iwarp.NewListener(ln, *cfg), nil
}

// A secureListener is one of TLS whose socket can be reached.
type secureListener struct {
	net.Listener
	syscall.Conn
}

// wrap returns what a connection of the system's TCP that this end has opened is replaced by, or nil: through TLS, and
// recorded inside it.
func (f *tlsFlags) wrap(command, addr string, over *network.Network,
	r *recording) (func(net.Conn) (net.Conn, error), error) {
	tap := r.wrap(over)
	cfg, err := f.client(command, addr)
	if cfg == nil || err != nil {
		return tap, err
	}
	return func(c net.Conn) (net.Conn, error) {
		secure := secureConn{tls.Client(c, cfg), f.TLSCA != ""} // the handshake is within the time that the startup has
		if tap == nil {
			return secure, nil
		}
		return tap(secure)
	}, nil
}
