package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp"
	"github.com/goiwarp/iwarp/capture"
	"github.com/goiwarp/iwarp/internal/peers"
	"github.com/goiwarp/iwarp/internal/peersim"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/mpa"
)

const troubleshooting = "../../docs/troubleshooting.md"

// TestTroubleshooting brings about each symptom of docs/troubleshooting.md, and compares what the command and the
// library say of it with what the page shows. Times, ports and sizes that are different each time are made the same.
func TestTroubleshooting(t *testing.T) {
	page, err := os.ReadFile(troubleshooting)
	testrig.Must(t, err)
	shown := regexp.MustCompile(`(?s)<!-- made: (\S+) -->\n(.*?)<!-- end -->`)
	left := map[string]bool{}
	for name := range symptoms {
		left[name] = true
	}
	fresh := shown.ReplaceAllStringFunc(string(page), func(part string) string {
		m := shown.FindStringSubmatch(part)
		delete(left, m[1])
		bring := symptoms[m[1]]
		if bring == nil {
			t.Errorf("the page shows %s, which nothing here brings about", m[1])
			return part
		}
		s := &symptom{T: t, dir: t.TempDir()}
		bring(s)
		text := "\n" + s.text() + "\n"
		if m[2] != text && !*update {
			t.Errorf("%s: the page shows\n%s\nand it is\n%s", m[1], m[2], text)
		}
		return "<!-- made: " + m[1] + " -->\n" + text + "<!-- end -->"
	})
	for name := range left {
		t.Errorf("the page does not show %s", name)
	}
	if *update {
		testrig.Must(t, os.WriteFile(troubleshooting, []byte(fresh), 0o600))
	}
}

// A symptom is being brought about.
type symptom struct {
	*testing.T
	dir  string
	said []string
	peer string // address of the other end, which the page calls 10.0.0.2:7174
}

// iwarp runs the command, and keeps what it says.
func (s *symptom) iwarp(args ...string) {
	host, port, err := net.SplitHostPort(s.peer)
	testrig.Must(s.T, err)
	s.said = append(s.said, "$ iwarp "+strings.Join(args, " "))
	for i, arg := range args {
		arg = strings.NewReplacer("10.0.0.2", host, "7174", port).Replace(arg)
		if strings.HasSuffix(arg, ".pcapng") || strings.HasSuffix(arg, ".pem") {
			arg = filepath.Join(s.dir, arg)
		}
		args[i] = arg
	}
	var out, errs bytes.Buffer
	run(args, streams{&out, &errs})
	s.said = append(s.said, out.String()+errs.String())
}

// says keeps an error of a program's.
func (s *symptom) says(who string, err error) {
	s.said = append(s.said, fmt.Sprintf("%s: %v", who, err))
}

// text is what was said, with what is not the same each time made the same.
func (s *symptom) text() string {
	text := strings.TrimSpace(strings.Join(s.said, "\n"))
	text = strings.ReplaceAll(text, s.dir+string(filepath.Separator), "")
	text = strings.ReplaceAll(text, s.peer, "10.0.0.2:7174")
	text = renumbered(replacedAll(text, [][2]string{
		{`127\.0\.0\.1:\d+`, "10.0.0.1:40000"},
		{` \d+\.\d{6} `, " 0.000000 "},
		{`within \d+(\.\d+)?m?s`, "within 100ms"},
		{`\d+(\.\d+)?(µ|m)?s after the Initiator's`, "1ms after the Initiator's"},
		{`(STag |RsvdULP=0x40 STag=)0x[0-9a-f]{8}`, "${1}0x5f31c200"},
		// depends on how TCP cuts
		{`(?m)^( +(->|<-) (FPDU|align).*| +(RDMA|Send|Terminate) .*| +(ended|findings) .*|\d+ packets, .*)$`,
			"      ..."},
	}))
	text = strings.TrimSpace(replacedAll(text, [][2]string{
		// is not what the symptom is about
		{`(?m)^ +(summary of|startup  |mode  |RTR  |IRD/ORD +asked IRD (1 ORD 1|32 ORD 32, got IRD 32)).*$`, "      ..."},
		{`(?m)^#0 .* mpa: start-re[qp] C .* ird 32 ord 32 peer2peer send write read RTR$`, "      ..."},
		{`(?m)^(RDMA addr|Recv completion).*$`, "      ..."},
		// stands in the error above it already
		{`(?m)^ {20,}(a responder that|the responder has|the Request asked|the FPDU was).*$`, "      ..."},
		{`(?s)\nHow Requests are answered\n.*?\nResembles\n`, "\n      ...\nResembles\n"},
		{`(?s)\n  cxgb4 .*\nUse --peer`, "\n      ...\nUse --peer"},
		{`( +\.\.\.(\n|$))+`, "      ...\n"},
		{`\n\n+`, "\n"},
	}))
	var b strings.Builder
	for line := range strings.Lines(text + "\n") {
		b.WriteString("    " + strings.TrimRight(line, " \n") + "\n")
	}
	return b.String()
}

// replacedAll is a text in which each pattern in turn is replaced by what stands beside it.
func replacedAll(text string, by [][2]string) string {
	for _, r := range by {
		text = regexp.MustCompile(r[0]).ReplaceAllString(text, r[1])
	}
	return text
}

// packetNumber is the one of a packet in what decode prints, with its connection's.
var packetNumber = regexp.MustCompile(`(?m)^(#\d+ +)(\d+) `)

// renumbered has the packets that decode names follow one another, after TCP's handshake: how many lie between them
// depends on how TCP cuts.
func renumbered(text string) string {
	told := map[string]int{}
	return packetNumber.ReplaceAllStringFunc(text, func(found string) string {
		m := packetNumber.FindStringSubmatch(found)
		if told[m[2]] == 0 {
			told[m[2]] = 4 + len(told)
		}
		return fmt.Sprintf("%s%*d ", m[1], len(m[2]), told[m[2]])
	})
}

// listens has the peer be a Listener, whose connections are captured in server.pcapng, and returns a QP that it has
// accepted.
func (s *symptom) listens(cfg iwarp.ListenConfig, accept iwarp.AcceptConfig) (accepted <-chan *iwarp.QP, end func()) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	testrig.Must(s.T, err)
	file, err := os.Create(filepath.Join(s.dir, "server.pcapng"))
	testrig.Must(s.T, err)
	w, err := capture.NewWriter(file, capture.WriterConfig{MSS: capture.MaxMSS})
	testrig.Must(s.T, err)
	ln := cfg.NewListener(capture.TapListener(inner, w))
	s.peer = ln.Addr().String()
	qps := make(chan *iwarp.QP, 1)
	go func() {
		req, err := ln.Accept(s.Context())
		if err != nil {
			s.Error(err)
			return
		}
		qp, err := req.Accept(s.Context(), accept)
		if err != nil {
			s.Error(err)
			return
		}
		qps <- qp
	}()
	return qps, func() { testrig.Must(s.T, errors.Join(ln.Close(), w.Flush(), file.Close())) }
}

// accepts has the peer be what handles its only connection.
func (s *symptom) accepts(handle func(net.Conn)) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	testrig.Must(s.T, err)
	s.Cleanup(func() { _ = ln.Close() })
	s.peer = ln.Addr().String()
	go func() {
		if conn, err := ln.Accept(); err == nil {
			handle(conn)
		}
	}()
}

// serves has the peer be a command.
func (s *symptom) serves(args ...string) {
	ctx, cancel := context.WithCancel(s.Context())
	var out testrig.Buffer
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = execute(ctx, args, streams{&out, &out})
	}()
	s.Cleanup(func() { cancel(); <-ended })
	for s.peer == "" {
		s.peer = regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(out.String())
		time.Sleep(time.Millisecond)
	}
}

// servesTLS has the peer be iwarp serve with TLS.
func (s *symptom) servesTLS(args ...string) {
	testrig.Must(s.T, certificates(s.dir))
	s.serves(append([]string{"serve", "127.0.0.1:0", "--tls-cert", filepath.Join(s.dir, "server.pem")}, args...)...)
}

func (s *symptom) dials(d iwarp.Dialer) *iwarp.QP {
	qp, err := d.Dial(s.Context(), "tcp", s.peer)
	testrig.Must(s.T, err)
	return qp
}

// symptoms bring about what the page shows, by the names that it has for them.
var symptoms = map[string]func(*symptom){
	"refused": func(s *symptom) {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		testrig.Must(s.T, err)
		s.peer = ln.Addr().String()
		testrig.Must(s.T, ln.Close())
		s.iwarp("rping", "-c", "-a", "10.0.0.2", "-p", "7174", "-C", "1")
	},
	"silent": func(s *symptom) {
		s.accepts(func(conn net.Conn) { <-s.Context().Done(); _ = conn.Close() })
		s.iwarp("rping", "-c", "-a", "10.0.0.2", "-p", "7174", "-C", "1", "--timeout", "100ms", "--pcap", "r.pcapng")
		s.iwarp("decode", "r.pcapng")
	},
	"other-protocol": func(s *symptom) {
		s.accepts(func(conn net.Conn) { _, _ = conn.Write([]byte("220 mail.example ESMTP ready\r\n")) })
		s.iwarp("rping", "-c", "-a", "10.0.0.2", "-p", "7174", "-C", "1")
	},
	"tls-missing": func(s *symptom) {
		s.servesTLS()
		s.iwarp("rping", "-c", "-a", "10.0.0.2", "-p", "7174", "-C", "1")
	},
	"tls-unwanted": func(s *symptom) {
		testrig.Must(s.T, certificates(s.dir))
		s.serves("serve", "127.0.0.1:0")
		s.iwarp("rping", "-c", "-a", "10.0.0.2", "-p", "7174", "-C", "1", "--tls-ca", "ca.pem")
	},
	"tls-certificate": func(s *symptom) {
		s.servesTLS("--tls-ca", filepath.Join(s.dir, "ca.pem"))
		s.iwarp("rping", "-c", "-a", "10.0.0.2", "-p", "7174", "-C", "1", "--tls-ca", "ca.pem")
	},
	"tls-authority": func(s *symptom) {
		s.servesTLS()
		s.iwarp("rping", "-c", "-a", "10.0.0.2", "-p", "7174", "-C", "1", "--tls-ca", "other-cert.pem")
		s.iwarp("rping", "-c", "-a", "10.0.0.2", "-p", "7174", "-C", "1", "--tls-ca", "ca.pem",
			"--tls-name", "client.example")
	},
	"revision2": func(s *symptom) {
		s.serves("rping", "-s", "-P", "-a", "127.0.0.1", "-p", "0", "--dialect", "rfc5044")
		s.iwarp("rping", "-c", "-a", "10.0.0.2", "-p", "7174", "-C", "1", "--no-fallback", "--pcap", "r.pcapng")
		s.iwarp("decode", "r.pcapng")
	},
	"revision2-fallback": func(s *symptom) {
		s.serves("rping", "-s", "-P", "-a", "127.0.0.1", "-p", "0", "--dialect", "rfc5044")
		s.iwarp("rping", "-c", "-a", "10.0.0.2", "-p", "7174", "-C", "1", "-d")
	},
	"markers": func(s *symptom) {
		siw := peers.All()[0]
		s.accepts(func(conn net.Conn) { _, _ = peersim.Respond(&siw, conn, peersim.Consumer{}) })
		s.iwarp("rping", "-c", "-a", "10.0.0.2", "-p", "7174", "-C", "1", "--markers", "--pcap", "r.pcapng")
		s.iwarp("decode", "r.pcapng")
	},
	"client-server": func(s *symptom) {
		accepted, end := s.listens(iwarp.ListenConfig{}, iwarp.AcceptConfig{})
		ini := s.dials(iwarp.Dialer{MPA: mpa.Offer{ClientServer: true}})
		res := <-accepted
		ctx, cancel := context.WithTimeout(s.Context(), 100*time.Millisecond)
		defer cancel()
		mr, err := res.PD().Register([]byte("who begins?"), 0)
		testrig.Must(s.T, err)
		s.says("the server's Send, with a context of 100 ms", res.Send(ctx, mr.Slice(0, mr.Len())))
		_ = ini.Close()
		_ = res.Close()
		end()
		s.iwarp("decode", "server.pcapng")
	},
	"no-receive": func(s *symptom) {
		accepted, end := s.listens(iwarp.ListenConfig{}, iwarp.AcceptConfig{})
		ini := s.dials(iwarp.Dialer{})
		testrig.Must(s.T, ini.PostSend(&iwarp.SendWR{Inline: []byte("who reads this?")}))
		s.bothEnd(ini, <-accepted)
		end()
		s.iwarp("decode", "server.pcapng")
	},
	"access": func(s *symptom) {
		pd, err := iwarp.NewRNIC(iwarp.RNICConfig{}).AllocPD()
		testrig.Must(s.T, err)
		mr, err := pd.Register(make([]byte, 8), iwarp.RemoteWrite)
		testrig.Must(s.T, err)
		accepted, end := s.listens(iwarp.ListenConfig{PD: pd}, iwarp.AcceptConfig{})
		ini := s.dials(iwarp.Dialer{})
		testrig.Must(s.T, ini.PostSend(&iwarp.SendWR{Op: iwarp.OpWrite,
			Inline: []byte("123456789"), Remote: mr.Remote(0)}))
		s.bothEnd(ini, <-accepted)
		end()
		s.iwarp("decode", "server.pcapng")
	},
	"crc": func(s *symptom) {
		accepted, end := s.listens(iwarp.ListenConfig{},
			iwarp.AcceptConfig{Prepare: func(qp *iwarp.QP) error { return qp.PostRecv(&iwarp.RecvWR{}) }})
		ini := s.dials(iwarp.Dialer{Wrap: func(conn net.Conn) (net.Conn, error) { return &spoiler{Conn: conn}, nil }})
		testrig.Must(s.T, ini.PostSend(&iwarp.SendWR{Inline: []byte("spoil me")}))
		s.bothEnd(ini, <-accepted)
		end()
		s.iwarp("decode", "server.pcapng")
	},
	"no-reads": func(s *symptom) {
		accepted, end := s.listens(iwarp.ListenConfig{}, iwarp.AcceptConfig{NoReads: true})
		ini := s.dials(iwarp.Dialer{})
		mr, err := ini.PD().Register(make([]byte, 8), iwarp.LocalWrite)
		testrig.Must(s.T, err)
		_, err = ini.Read(s.Context(), mr.Slice(0, 8), iwarp.Remote{STag: 1})
		s.says("the client's Read", err)
		_ = ini.Close()
		_ = (<-accepted).Close()
		end()
		s.iwarp("decode", "server.pcapng")
	},
	"probe": func(s *symptom) {
		s.serves("rping", "-s", "-P", "-a", "127.0.0.1", "-p", "0", "--dialect", "rfc5044")
		s.iwarp("probe", "10.0.0.2:7174")
	},
	"sctp": func(s *symptom) {
		conn, err := net.ListenPacket("udp", "127.0.0.1:0")
		testrig.Must(s.T, err)
		s.peer = conn.LocalAddr().String()
		testrig.Must(s.T, conn.Close())
		s.iwarp("rping", "-c", "-a", "10.0.0.2", "-p", "7174", "-C", "1", "--network", "sctp", "--timeout", "100ms")
	},
}

// bothEnd keeps why the connection has ended for each of its ends.
func (s *symptom) bothEnd(ini, res *iwarp.QP) {
	<-ini.Done()
	<-res.Done()
	s.says("the client", ini.Err())
	s.says("the server", res.Err())
	_ = ini.Close()
	_ = res.Close()
}

// A spoiler changes a byte of a message, as bad memory in a switch does.
type spoiler struct{ net.Conn }

func (c *spoiler) Write(b []byte) (int, error) {
	if at := bytes.Index(b, []byte("spoil")); at >= 0 {
		b = bytes.Clone(b)
		b[at] ^= 0x20
	}
	return c.Conn.Write(b)
}
