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

// tlsFlags are the options of TLS.
type tlsFlags struct {
	TLS         bool   `name:"tls" help:"Connect with TLS (implied by the other --tls options). A server uses --tls-cert."`
	TLSCert     string `name:"tls-cert" placeholder:"FILE" help:"Own certificate chain (PEM). A server needs one for TLS."`
	TLSKey      string `name:"tls-key" placeholder:"FILE" help:"Private key (PEM; default: in the file of --tls-cert)."`
	TLSCA       string `name:"tls-ca" placeholder:"FILE" help:"CA certificates (PEM) to verify the peer with. A client's default: the system's. A server asks clients for a certificate only with this option."`
	TLSName     string `name:"tls-name" placeholder:"NAME" help:"Name that the server's certificate must have (default: the host of the address)."`
	TLSInsecure bool   `name:"tls-insecure" help:"Do not verify the server (insecure)."`

	// staleTLS, if set, gets the errors of changed files that cannot be used. The default prints them.
	staleTLS func(error)
}

// stale reports such a file.
func (f *tlsFlags) stale(err error) {
	if f.staleTLS != nil {
		f.staleTLS(err)
		return
	}
	fmt.Fprintf(os.Stderr, "iwarp: %s: still using the previous contents\n", oneLine(err))
}

// given returns an option of TLS that was given, or "".
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

// givenToConnect returns one that is for clients only, or "".
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

// hideToConnect hides the client's options in the help of serve. They stay known, so that serve refuses them with a
// reason.
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

// checkTLS refuses options that conflict or have no effect.
func (f *tlsFlags) checkTLS(command string, listens bool, over *network.Network) error {
	option := f.given()
	switch {
	case option == "":
		return nil
	case !over.Sockets:
		return usage("%s: %s: TLS needs --network tcp", command, option)
	case listens && f.givenToConnect() != "":
		return usage("%s: %s: for clients only; a server uses --tls-cert", command, f.givenToConnect())
	case listens && f.TLSCert == "":
		return usage("%s: %s: a server needs a certificate for TLS (--tls-cert)", command, option)
	case f.TLSKey != "" && f.TLSCert == "":
		return usage("%s: --tls-key: needs --tls-cert", command)
	case f.TLSInsecure && (f.TLSCA != "" || f.TLSName != ""):
		return usage("%s: --tls-insecure: it verifies nothing, so --tls-ca and --tls-name have no effect",
			command)
	}
	return nil
}

// config returns the configuration common to both ends; nil means no TLS.
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

// pair returns the certificate with its key.
func (f *tlsFlags) pair() (pair tls.Certificate, err error) {
	cert, err := os.ReadFile(f.TLSCert)
	if err != nil {
		return pair, fmt.Errorf("--tls-cert: %w%s",
			err, wording.If(errors.Is(err, fs.ErrNotExist), ": name the PEM file of the certificate", ""))
	}
	if !bytes.Contains(cert, []byte("-----BEGIN ")) {
		return pair, fmt.Errorf("--tls-cert: %s has no PEM data: name the PEM file of the certificate", f.TLSCert)
	}
	key, option := cert, "--tls-cert"
	if f.TLSKey != "" {
		option = "--tls-cert and --tls-key"
		if key, err = os.ReadFile(f.TLSKey); err != nil {
			return pair, fmt.Errorf("--tls-key: %w", err)
		}
	} else if bytes.Contains(cert, []byte("-----BEGIN CERTIFICATE-----")) &&
		!bytes.Contains(cert, []byte("PRIVATE KEY-----")) {
		return pair, fmt.Errorf("--tls-cert: %s has no private key: name its file with --tls-key", f.TLSCert)
	}
	if pair, err = tls.X509KeyPair(cert, key); err != nil {
		err = fmt.Errorf("%s: %w", option, err)
	}
	return pair, err
}

// pool returns the certificates of --tls-ca, or nil.
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

// server returns the configuration of a server; nil means no TLS.
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

// client returns the configuration for connecting to addr; nil means no TLS.
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

// listenSockets listens on the system's TCP, with TLS if configured. A recording gets the data inside TLS.
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

// listenOver listens over any network, with TLS if configured.
func (f *tlsFlags) listenOver(ctx context.Context, command, addr string, over *network.Network,
	cfg *iwarp.ListenConfig) (*iwarp.Listener, error) {
	if !over.Sockets {
		return over.Listen(ctx, addr, cfg)
	}
	ln, err := f.listenSockets(ctx, command, addr, nil)
	if err != nil {
		return nil, err
	}
	return cfg.NewListener(ln), nil
}

// A secureListener is a TLS listener whose socket is accessible.
type secureListener struct {
	net.Listener
	syscall.Conn
}

// wrap returns a function that adds TLS to an outgoing TCP connection and records the data inside it, or nil.
func (f *tlsFlags) wrap(command, addr string, over *network.Network,
	r *recording) (func(net.Conn) (net.Conn, error), error) {
	tap := r.wrap(over)
	cfg, err := f.client(command, addr)
	if cfg == nil || err != nil {
		return tap, err
	}
	return func(c net.Conn) (net.Conn, error) {
		secure := secureConn{tls.Client(c, cfg), f.TLSCA != ""} // the startup's timeout covers the handshake
		if tap == nil {
			return secure, nil
		}
		return tap(secure)
	}, nil
}
