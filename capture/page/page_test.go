package page_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/capture/page"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/rdmap"
)

// document parses a page, and fails if an element is not closed as it is opened.
func document(t testing.TB, b []byte) *html.Node {
	t.Helper()
	balanced(t, b)
	doc, err := html.Parse(bytes.NewReader(b))
	testrig.Must(t, err)
	return doc
}

// balanced fails if an element is not closed where it should be.
func balanced(t testing.TB, b []byte) {
	t.Helper()
	void := map[string]bool{"meta": true}
	var open []string
	for z := html.NewTokenizer(bytes.NewReader(b)); ; {
		switch z.Next() {
		case html.ErrorToken:
			if len(open) > 0 {
				t.Errorf("not closed: %v", open)
			}
			return
		case html.StartTagToken:
			if name, _ := z.TagName(); !void[string(name)] {
				open = append(open, string(name))
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			if len(open) == 0 || open[len(open)-1] != string(name) {
				t.Fatalf("</%s> in %v", name, open)
			}
			open = open[:len(open)-1]
		}
	}
}

// elements returns those of a name, or all.
func elements(doc *html.Node, name string) (found []*html.Node) {
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && (name == "" || n.Data == name) {
			found = append(found, n)
		}
	}
	return found
}

func attribute(n *html.Node, name string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}

func byID(t testing.TB, doc *html.Node, id string) *html.Node {
	t.Helper()
	for _, n := range elements(doc, "") {
		if v, _ := attribute(n, "id"); v == id {
			return n
		}
	}
	t.Fatalf("no element has the id %q", id)
	return nil
}

// text returns the text in an element.
func text(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// small is a page of two connections.
func small() *page.Page {
	p := page.New(page.Config{Name: "small.pcap"})
	first := newScript(p, 0)
	first.startup([]byte("first"))
	first.send(forth, rdmap.OpSend, 10)
	first.send(back, rdmap.OpSend, 20)
	first.finish()
	second := newScript(p, 5)
	second.startup(nil)
	f := second.send(forth, rdmap.OpWrite, 1000)
	second.send(back, rdmap.OpReadRequest, 0)
	second.finding(decode.Error, forth, f.Offset, "the CRC is wrong")
	second.finding(decode.Note, back, 3, "a reserved bit")
	second.finish()
	p.Totals(decode.Totals{Packets: 12, Bytes: 3456, Connections: 3, IWARP: 2})
	return p
}

// TestReadableWithoutScripts looks for what is to be read in the page as it is.
func TestReadableWithoutScripts(t *testing.T) {
	doc := document(t, written(t, small()))
	for id, want := range map[string][]string{
		"totals": {"12 packets, 3456 bytes; 3 TCP connections, 2 of them iWARP; 0 errors, 0 warnings, 0 notes"},
		"connections": {"10.0.0.1:40000 → [2001:db8::2]:4791", "RFC 6581", "agreed, revisions 2 and 2",
			"CRC on, markers →", "good", "1 error"},
		"c0": {"TCP SYN,ACK", "start-req", "start-rep", "fpdu", "TCP FIN,ACK", "None.", "Summary",
			"revision 2 from the Initiator"},
		"c5-f0": {"error", "crc-wrong", "[F04]", "client → offset 20, packet", "the CRC is wrong", "look at the sender"},
		"c5-f1": {"note", "server ← offset 3,", "a reserved bit"},
	} {
		for _, w := range want {
			if got := text(byID(t, doc, id)); !strings.Contains(got, w) {
				t.Errorf("%s does not say %q: %s", id, w, got)
			}
		}
	}
}

// TestLinks looks whether links lead somewhere, and IDs are unique.
func TestLinks(t *testing.T) {
	doc := document(t, written(t, small()))
	ids := map[string]bool{}
	for _, n := range elements(doc, "") {
		if id, ok := attribute(n, "id"); ok && ids[id] {
			t.Errorf("two elements have the id %q", id)
		} else if ok {
			ids[id] = true
		}
	}
	links := elements(doc, "a")
	if len(links) != 4 {
		t.Errorf("%d links, want those of 2 connections and 2 findings", len(links))
	}
	for _, a := range links {
		if href, _ := attribute(a, "href"); !ids[strings.TrimPrefix(href, "#")] {
			t.Errorf("the link %q leads nowhere", href)
		}
	}
}

// TestNoNetwork looks for anything in the page that a browser might fetch.
func TestNoNetwork(t *testing.T) {
	b := written(t, small())
	for _, part := range []string{"http:", "https:", "url(", "@import", "fetch(", "XMLHttpRequest",
		"WebSocket", "import("} {
		if bytes.Contains(b, []byte(part)) {
			t.Errorf("the page has %q in it", part)
		}
	}
	doc := document(t, b)
	for _, n := range elements(doc, "") {
		switch n.Data {
		case "link", "img", "iframe", "object", "embed", "base", "form", "audio", "video", "image", "use":
			t.Errorf("<%s> is in the page", n.Data)
		}
		for _, a := range n.Attr {
			if a.Key == "src" || a.Key == "srcset" || a.Key == "href" && !strings.HasPrefix(a.Val, "#") {
				t.Errorf("<%s %s=%q>", n.Data, a.Key, a.Val)
			}
			if a.Key == "style" || strings.HasPrefix(a.Key, "on") {
				t.Errorf("<%s %s>: the policy forbids it", n.Data, a.Key)
			}
		}
	}
}

// TestPolicy checks that the Content-Security-Policy lets through the page's own style and
// script, and nothing else.
func TestPolicy(t *testing.T) {
	doc := document(t, written(t, small()))
	var policy string
	for _, m := range elements(doc, "meta") {
		if v, _ := attribute(m, "http-equiv"); v == "Content-Security-Policy" {
			policy, _ = attribute(m, "content")
		}
	}
	want := "default-src 'none'; base-uri 'none'; form-action 'none'; style-src '" + sum(elements(doc, "style")[0])
	for _, s := range elements(doc, "script") {
		if _, typed := attribute(s, "type"); !typed {
			want += "'; script-src '" + sum(s) + "'"
		}
	}
	if policy != want {
		t.Errorf("policy is %q, want %q", policy, want)
	}
}

func sum(n *html.Node) string {
	h := sha256.Sum256([]byte(text(n)))
	return "sha256-" + base64.StdEncoding.EncodeToString(h[:])
}

// TestHostileTexts puts what comes from a capture into every text, and looks whether it
// stays text.
func TestHostileTexts(t *testing.T) {
	plain := document(t, written(t, hostile("harmless", nil)))
	for _, bad := range []string{
		"</script><script>alert(1)</script>", "<!--<script>", "]]>",
		"\"'`><img src=x onerror=alert(1)>", "&lt;/script&gt;",
		"</title></style><base href=x>", "\x00\xff\xfe\u2028\u2029", "{{.Name}}", "</svg></article>",
	} {
		t.Run(fmt.Sprintf("%q", bad), func(t *testing.T) {
			doc := document(t, written(t, hostile(bad, []byte(bad))))
			if got, want := shape(doc), shape(plain); got != want {
				t.Errorf("the elements are\n%s\nwant\n%s", got, want)
			}
			for _, s := range elements(doc, "script") {
				if kind, _ := attribute(s, "type"); kind == "application/json" && !json.Valid([]byte(text(s))) {
					t.Errorf("no JSON: %s", text(s))
				}
			}
		})
	}
}

func hostile(bad string, private []byte) *page.Page {
	p := page.New(page.Config{Name: bad})
	s := newScript(p, 0)
	s.startup(append([]byte("pd"), private...))
	s.send(forth, rdmap.OpSend, 10)
	f := s.fpdu(forth, rdmap.OpTerminate, 0)
	f.Err = failure(bad)
	s.tell.FPDU(s.conn, f)
	s.finding(decode.Error, forth, 0, bad)
	s.tell.Missing(s.conn, &decode.Missing{Offset: s.ends[0], End: s.ends[0] + 10, Captured: true})
	s.finish()
	return p
}

// shape is the elements of a page, by name and class.
func shape(doc *html.Node) string {
	var b strings.Builder
	for _, n := range elements(doc, "") {
		class, _ := attribute(n, "class")
		fmt.Fprintf(&b, "%s.%s ", n.Data, class)
	}
	return b.String()
}

// TestBounds checks that what comes after the bounds are reached is not kept, and that the page says
// so.
func TestBounds(t *testing.T) {
	p := page.New(page.Config{Name: "x", FPDUs: 100, Segments: 50, Markers: 20, Connections: 1})
	s := newScript(p, 0)
	s.long(1000)
	newScript(p, 1).long(100)
	b := written(t, p)
	doc := document(t, b)
	got := text(doc)
	for _, want := range []string{
		"Showing the first 100 of 1000 FPDUs.", "Showing the first 50 of 1003 TCP segments.",
		"Showing the first 20 of ",
		"1 more connections are not shown",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if strings.Contains(got, "#1 ") {
		t.Error("the second connection is there")
	}
}

// TestSize bounds the page of 100,000 FPDUs, which is to be opened from disk and sent by
// mail.
func TestSize(t *testing.T) {
	p := page.New(page.Config{Name: "x"})
	rows := 20_000
	if testrig.Everything() {
		rows = 100_000
	}
	newScript(p, 0).long(rows)
	if n, most := len(written(t, p)), rows*(8<<20)/100_000; n > most {
		t.Errorf("%d bytes", n)
	} else {
		t.Logf("%d bytes", n)
	}
}

// TestDeterministic writes the same page twice.
func TestDeterministic(t *testing.T) {
	p := small()
	if a, b := written(t, p), written(t, p); !bytes.Equal(a, b) {
		t.Error("a page is not the same when written again")
	}
	if !bytes.Equal(written(t, small()), written(t, small())) {
		t.Error("two pages of the same events differ")
	}
}

// TestEmpty writes a page without connections.
func TestEmpty(t *testing.T) {
	doc := document(t, written(t, page.New(page.Config{Name: "none"})))
	if got := text(byID(t, doc, "connections")); !strings.Contains(got, "No iWARP connection was found.") {
		t.Error(got)
	}
}

// BenchmarkPage collects and writes a page.
func BenchmarkPage(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		p := page.New(page.Config{Name: "x"})
		newScript(p, 0).long(100_000)
		b.SetBytes(int64(len(written(b, p))))
	}
}

// TestHeading: the heading of findings says how many there are, and are not.
func TestHeading(t *testing.T) {
	p := page.New(page.Config{Name: "counted"})
	s := newScript(p, 0)
	for range 8 {
		s.finding(decode.Note, forth, 3, "found")
	}
	s.conn.Findings[decode.Note]++ // as package decode counts one that it does not report
	if got := text(byID(t, document(t, written(t, p)), "c0")); !strings.Contains(got, "8 findings, 1 more not shown") {
		t.Error(got)
	}
}

// TestWorstFirst: the findings of a connection are listed from the worst on.
func TestWorstFirst(t *testing.T) {
	p := page.New(page.Config{Name: "sorted"})
	s := newScript(p, 0)
	for i, severity := range []decode.Severity{decode.Note, decode.Warning, decode.Error, decode.Warning} {
		s.finding(severity, forth, uint64(i), "found")
	}
	doc := document(t, written(t, p))
	for i, want := range []string{"offset 2", "offset 1", "offset 3", "offset 0"} {
		if got := text(byID(t, doc, fmt.Sprintf("c0-f%d", i))); !strings.Contains(got, want) {
			t.Errorf("finding %d is %q, want %s", i, got, want)
		}
	}
}

// TestNoteIsSaid: a connection with a note is not called good.
func TestNoteIsSaid(t *testing.T) {
	p := page.New(page.Config{Name: "noted"})
	newScript(p, 0).finding(decode.Note, forth, 3, "a reserved bit")
	for _, badge := range elements(byID(t, document(t, written(t, p)), "connections"), "span") {
		if class, _ := attribute(badge, "class"); text(badge) != "1 note" || class != "badge note" {
			t.Errorf("%q in %q", text(badge), class)
		}
	}
}
