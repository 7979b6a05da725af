package page_test

import (
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/capture/decode"
	"github.com/goiwarp/iwarp/capture/page"
	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/rdmap"
)

// pinged is a capture of rping.
const pinged = testrig.Stored + "/siw-rping.pcap"

// TestULP: what the ULP says is with the FPDUs in the data, and in the ladder.
func TestULP(t *testing.T) {
	a := capturePage(t, pinged)
	doc := document(t, written(t, a.Page))
	var all []string
	for _, text := range dataOf(t, doc, 1).FPDUs.texts {
		all = append(all, text)
	}
	said := strings.Join(all, "\n")
	for want, times := range map[string]int{
		"rping: buffer of 64 bytes at STag 0xc7408700": 3, "rping: Read of STag 0xc7408700: the client's buffer": 3, "rping: go ahead": 6,
	} {
		if got := strings.Count(said, want); got != times {
			t.Errorf("%q is there %d times, want %d: %s", want, got, times, said)
		}
	}
	if ladder := text(elements(doc, "svg")[0]); !strings.Contains(ladder, "rping: buffer of 64 bytes") {
		t.Errorf("the ladder does not tell of the buffer: %s", ladder)
	}
}

// TestULPOmitted: what was said of FPDUs that are not shown is counted.
func TestULPOmitted(t *testing.T) {
	p := page.New(page.Config{Name: "few", FPDUs: 1})
	s := newScript(p, 0)
	for range 3 {
		f := s.send(forth, rdmap.OpSend, 16)
		s.tell.ULP(s.conn, &decode.ULP{Dir: forth, Offset: f.Offset, Packet: f.Last, Protocol: "rping", Text: "go ahead"})
	}
	s.finish()
	const want = "Showing the first 1 of 3 lines on what the ULP says."
	if got := text(document(t, written(t, p))); !strings.Contains(got, want) {
		t.Errorf("the page does not say %q", want)
	}
}

// TestExplained: a finding has its rule, and the bytes as they are and as they should be.
func TestExplained(t *testing.T) {
	p := page.New(page.Config{Name: "explained"})
	s := newScript(p, 0)
	is, want := []byte{0x4c, 0x86}, []byte{0x52, 0x23}
	s.tell.Finding(s.conn, &decode.Finding{Severity: decode.Error, Name: "crc-wrong", ID: "F04", Text: "it is wrong",
		Evidence: &decode.Evidence{Offset: 100, Bytes: is, Want: want}})
	clear(is) // the caller's again
	got := text(byID(t, document(t, written(t, p)), "c0-f0"))
	for _, want := range []string{"RFC 5044, section 4.4: the CRC32C covers", "Bytes 100 to 101 are 4c 86, and should be 52 23."} {
		if !strings.Contains(got, want) {
			t.Errorf("it does not say %q: %s", want, got)
		}
	}
}

// said finds what the ULP has said by the search, and shows it around the FPDU.
func (w browser) said(t *testing.T) {
	a := capturePage(t, pinged)
	b := w.open(t, a.Page, "")
	b.eval(`(() => { const f = document.getElementById("find"); f.value = "the client's buffer"; f.form.requestSubmit(); })()`)
	b.frames()
	b.want(`document.querySelector(".detail").textContent.includes("rping: Read of STag 0xc7408700: the client's buffer")`, "true")
	b.want(`document.querySelector(".around .step.current").textContent.includes("; rping: Read of STag 0xc7408700")`, "true")
	b.clickAt(43814*time.Microsecond, slowDot) // where the slowest answer was asked for: packet 25, answered by 28
	b.want(`document.querySelector(".detail").textContent.includes("rping: go ahead, after 11.531ms")`, "true")
}
