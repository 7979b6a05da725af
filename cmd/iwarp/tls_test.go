package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// An authority vouches for others.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// certificatesCmd writes what ends of TLS need.
func certificatesCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: certificates")
	}
	ts.Check(certificates(ts.MkAbs(".")))
}

// certificates writes them to a directory.
func certificates(dir string) error {
	ca, caCert, _, err := (*authority)(nil).vouch("authority")
	if err != nil {
		return err
	}
	errs := []error{writePEM(dir, "ca.pem", caCert)}
	for name, by := range map[string]*authority{"server": ca, "client": ca, "other": nil} {
		_, cert, key, err := by.vouch(name)
		if err != nil {
			return err
		}
		errs = append(errs, writePEM(dir, name+".pem", cert, key), writePEM(dir, name+"-cert.pem", cert),
			writePEM(dir, name+"-key.pem", key))
	}
	return errors.Join(errs...)
}

func writePEM(dir, name string, blocks ...*pem.Block) error {
	var b bytes.Buffer
	for _, block := range blocks {
		if err := pem.Encode(&b, block); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o600)
}

// vouch makes a key and a certificate, that of a new authority if a is nil.
func (a *authority) vouch(name string) (of *authority, cert, key *pem.Block, err error) {
	of = new(authority)
	if of.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{name + ".example"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		IsCA: a == nil, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	by := a
	if by == nil {
		by = &authority{template, of.key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, of.key.Public(), by.key)
	if err != nil {
		return nil, nil, nil, err
	}
	if of.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, nil, nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(of.key)
	return of, &pem.Block{Type: "CERTIFICATE", Bytes: der}, &pem.Block{Type: "PRIVATE KEY", Bytes: secret}, err
}

// TestTLSNames: the certificate is to have the name of the host that was asked for, unless another is named.
func TestTLSNames(t *testing.T) {
	for _, c := range []struct {
		flags tlsFlags
		want  string
	}{{tlsFlags{TLS: true}, "host.example"}, {tlsFlags{TLSName: "other.example"}, "other.example"}} {
		if cfg, err := c.flags.client("cat", "host.example:7174"); err != nil ||
			cfg.ServerName != c.want || cfg.InsecureSkipVerify {
			t.Errorf("%+v: %+v, %v", c.flags, cfg, err)
		}
	}
	if cfg, err := new(tlsFlags).client("cat", "host.example:7174"); cfg != nil || err != nil {
		t.Errorf("%+v, %v", cfg, err)
	}
}
