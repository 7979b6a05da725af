package message_test

import (
	"bytes"
	"errors"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/goiwarp/iwarp/internal/testrig"
	"github.com/goiwarp/iwarp/internal/transfer/message"
)

// digest is 01 02 03 ... 20.
func digest() (d message.Digest) {
	for i := range d {
		d[i] = byte(i + 1)
	}
	return d
}

const digestHex = "01020304 05060708 090a0b0c 0d0e0f10 11121314 15161718 191a1b1c 1d1e1f20"

// all has a message of each type, in bytes with what they are.
var all = []struct {
	hex string
	m   message.Message
}{
	{`01 13 0000        # Begin: Put, Force, Into
	  0000000000100000  # Rate: 1 MiB/s
	  0003 612f62       # Path "a/b"`,
		message.Begin{Put: true, Force: true, Into: true, Rate: 1 << 20, Path: "a/b"}},
	{`01 0c 0000        # Begin: Resume, Recursive
	  0000000000000000  # Rate: any
	  0000              # Path: the server's directory`,
		message.Begin{Resume: true, Recursive: true}},
	{`02 00 0001        # Offer: a File
	  000001a4 00000005 # Mode 0644, Nanoseconds
	  ffffffffffffffff  # Seconds -1
	  0000000000001000  # Size 4096
	  0001 78 0000      # Path "x", no Detail`,
		message.Offer{Kind: message.File, Mode: 0o644, Nanoseconds: 5, Seconds: -1, Size: 4096, Path: "x"}},
	{`02 00 0004        # Offer: a Link
	  00000000 00000000
	  0000000000000000
	  0000000000000000
	  0003 642f6c       # Path "d/l"
	  0001 66           # to "f"`,
		message.Offer{Kind: message.Link, Path: "d/l", Detail: "f"}},
	{`03 00 000a        # Answer: Full
	  0002 6e6f         # Text "no"`,
		message.Answer{Code: message.Full, Text: "no"}},
	{`04 03 0000        # Grant: Place, Have
	  0000000000100000  # Offset 1 MiB
	  00001000          # Length 4096
	  11223344          # STag
	  0000000000000020  # TO
	  ` + digestHex,
		message.Grant{Place: true, Have: true, Offset: 1 << 20, Length: 4096, STag: 0x11223344,
			TO: 32, Digest: digest()}},
	{`05 00 0001        # Wrote: Written
	  0000000000100000  # Offset
	  00001000          # Length
	  ` + digestHex + ` 0000`,
		message.Wrote{State: message.Written, Offset: 1 << 20, Length: 4096, Digest: digest()}},
	{`06 01 0000        # Done: Changed
	  ` + digestHex,
		message.Done{Changed: true, Digest: digest()}},
	{"07 00 0000 # End", message.End{}},
	{"08 00 0000 # Working", message.Working{}},
}

// TestMessages has the bytes of each type.
func TestMessages(t *testing.T) {
	for _, c := range all {
		data := testrig.Bytes(t, c.hex)
		m, err := message.Parse(data)
		testrig.Must(t, err)
		if diff := cmp.Diff(c.m, m); diff != "" {
			t.Errorf("%v: %s", c.m.Type(), diff)
		}
		if got := c.m.Append(nil); !bytes.Equal(got, data) {
			t.Errorf("%v: appended as % x", c.m.Type(), got)
		}
		for n := range data {
			if m, err := message.Parse(data[:n]); err == nil {
				t.Errorf("the first %d bytes of %v are %v", n, c.m.Type(), m)
			}
		}
		if m, err := message.Parse(append(data, 0)); err == nil {
			t.Errorf("%v and a byte more is %v", c.m.Type(), m)
		}
	}
}

// TestRefused has messages that nobody is to look at twice.
func TestRefused(t *testing.T) {
	file := message.Offer{Kind: message.File, Path: "x"}
	block := message.Grant{Place: true, Length: 1}
	for name, c := range map[string]struct {
		field string
		m     message.Message
	}{
		"no kind":            {"Code", message.Offer{Path: "x"}},
		"kind 6":             {"Code", message.Offer{Kind: 6, Path: "x"}},
		"setuid":             {"Mode", with(file, func(o *message.Offer) { o.Mode = 0o4755 })},
		"a second":           {"Nanoseconds", with(file, func(o *message.Offer) { o.Nanoseconds = 1e9 })},
		"below zero":         {"Size", with(file, func(o *message.Offer) { o.Size = 1 << 63 })},
		"the size overflows": {"Size", with(file, func(o *message.Offer) { o.Size = message.MaxSize + 1 })},
		"a directory's size": {"Size", message.Offer{Kind: message.Directory, Path: "x", Size: 1}},
		"climbs":             {"Path", with(file, func(o *message.Offer) { o.Path = "x/../../y" })},
		"no path":            {"Path", with(file, func(o *message.Offer) { o.Path = "" })},
		"a long path": {"Path", with(file,
			func(o *message.Offer) { o.Path = strings.Repeat("x", message.MaxPath+1) })},
		"a detail for nobody":  {"Detail", with(file, func(o *message.Offer) { o.Detail = "x" })},
		"the text is no UTF-8": {"Text", message.Answer{Text: "\xff"}},
		"begins above":         {"Path", message.Begin{Path: "../x"}},
		"begins at the root":   {"Path", message.Begin{Path: "/etc"}},
		"code 99":              {"Code", message.Answer{Code: 99}},
		"no bytes":             {"Length", with(block, func(g *message.Grant) { g.Length = 0 })},
		"too many bytes":       {"Length", with(block, func(g *message.Grant) { g.Length = message.MaxBlock + 1 })},
		"offset below zero":    {"Offset", with(block, func(g *message.Grant) { g.Offset = 1 << 63 })},
		"offset wraps":         {"Offset", with(block, func(g *message.Grant) { g.Offset = 1<<64 - 1 })},
		"memory wraps":         {"TO", with(block, func(g *message.Grant) { g.TO = 1<<64 - 1 })},
		"nothing granted":      {"Flags", message.Grant{Length: 1}},
		"memory not offered":   {"STag", message.Grant{Have: true, Length: 1, STag: 1}},
		"digest of nothing":    {"Digest", with(block, func(g *message.Grant) { g.Digest[3] = 1 })},
		"no state":             {"Code", message.Wrote{Length: 1}},
		"a text for success":   {"Text", message.Wrote{State: message.Written, Length: 1, Text: "x"}},
	} {
		m, err := message.Parse(c.m.Append(nil))
		var wrong *message.Error
		if !errors.As(err, &wrong) || wrong.Field != c.field || wrong.Type != c.m.Type() {
			t.Errorf("%s: %v, %v", name, m, err)
		}
	}
	for _, data := range []string{"00 00 0000", "09 00 0000", "07 01 0000", "07 00 0001", "06 02 0000" + digestHex} {
		if m, err := message.Parse(testrig.Bytes(t, data)); err == nil {
			t.Errorf("%s is %v", data, m)
		}
	}
}

// with returns a changed copy.
func with[M any](m M, change func(*M)) M {
	change(&m)
	return m
}

// TestNames refuses what climbs, what no file has, and what a terminal would obey.
func TestNames(t *testing.T) {
	for _, good := range []string{"a", "a/b", "...", ".hidden", "a b", "ü", "-", "a\\b", "~",
		strings.Repeat("x", message.MaxPath)} {
		testrig.Should(t, message.CheckPath(good))
	}
	for _, bad := range []string{
		"", ".", "..", "/", "/a", "a/", "a//b", "a/./b", "a/../b", "../a", "a/..", "a\x00b", "a\nb", "\x1b[2J", "\x7f",
		"\u009b", "\u202e", "\xff",
		".a" + message.PartSuffix, strings.Repeat("x", message.MaxPath+1),
	} {
		if message.CheckPath(bad) == nil {
			t.Errorf("%q is allowed", bad)
		}
	}
}

// TestLinks allows links that stay in the tree that they are copied with at every step, and says why another is not
// copied.
func TestLinks(t *testing.T) {
	for _, good := range [][2]string{
		{"t/l", "f"}, {"t/l", "a/b"}, {"t/a/l", "../f"}, {"t/a/b/l", "../../f"}, {"t/l", "./f"}, {"t/l", "a/"},
		{"t/l", "."}, {"t/l", "a//b"}, {"t/l", "a/../f"},
		{"t/a/l", ".."}, {"t/a/l", "../"}, {"t/a/l", "./../f"}, {"t/a/b/l", "d/../../f"}, {"t/l", "a/.."},
	} {
		testrig.Should(t, message.CheckLink(good[0], good[1]))
	}
	const out = "a symbolic link that leads out of the directory that is copied"
	for _, bad := range [][3]string{
		{"l", "f", "a symbolic link by itself"}, {"t/l", "../f", out}, {"t/l", "..", out}, {"t/l", "../t/f", out},
		{"t/a/l", "../../f", out}, {"t/l", "a/../../t", out},
		{"t/l", "/etc", "a symbolic link that begins at the root, which leads elsewhere on another host"},
		{"t/l", "", "a symbolic link of 0 bytes, of at most 1024"},
		{"t/l", strings.Repeat("a/", 513), "a symbolic link of 1026 bytes, of at most 1024"},
		{"t/l", "a\nb", "a symbolic link: a name with control characters: rename it"},
		{"t/l", ".f.iwarp-part", `a symbolic link: ".f.iwarp-part" is the name of what a cut copy has left`},
	} {
		if err := message.CheckLink(bad[0], bad[1]); err == nil || err.Error() != bad[2] {
			t.Errorf("%q may be %q: %v", bad[0], bad[1], err)
		}
	}
}

// within reports whether a link leads to something in the first name of its path, as package path has it.
func within(at, target string) bool {
	first, _, deeper := strings.Cut(at, "/")
	to := path.Join(path.Dir(at), target)
	return deeper && !path.IsAbs(target) && (to == first || strings.HasPrefix(to, first+"/"))
}

// TestTexts has words for each code, type and what is none.
func TestTexts(t *testing.T) {
	seen := map[string]bool{}
	for c := message.OK; c <= message.NotRegular; c++ {
		if text := c.String(); text == "" || seen[text] {
			t.Errorf("code %d: %q", c, text)
		} else {
			seen[text] = true
		}
	}
	if message.Code(99).String() != "code 99" || message.Type(99).String() != "type 99" ||
		message.TypeGrant.String() != "Grant" {
		t.Error("what is none")
	}
	if _, err := message.Parse([]byte{2, 0, 0}); err == nil ||
		!strings.Contains(err.Error(), "byte 0: 3 bytes are left of 4") {
		t.Errorf("%v", err)
	}
}

// FuzzParse has every message that is taken be the one that it is sent as, in range and without a way out.
func FuzzParse(f *testing.F) {
	for _, c := range all {
		f.Add(c.m.Append(nil))
	}
	for _, to := range []string{"./f", "a/", ".", "..", "a/../f", "../a/../../f", "a/../../d", "/f", "../d/f", "//"} {
		f.Add(message.Offer{Kind: message.Link, Path: "d/e/l", Detail: to}.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := message.Parse(b)
		if err != nil {
			return
		}
		if again := m.Append(nil); !bytes.Equal(again, b) {
			t.Errorf("% x is % x", b, again)
		}
		if o, ok := m.(message.Offer); ok && o.Kind != message.Missed {
			testrig.Should(t, message.CheckPath(o.Path))
		}
		if o, ok := m.(message.Offer); ok && o.Kind == message.Link && message.CheckLink(o.Path, o.Detail) == nil &&
			!within(o.Path, o.Detail) {
			t.Errorf("%q may be %q", o.Path, o.Detail)
		}
		if g, ok := m.(message.Grant); ok && (int64(g.Offset+uint64(g.Length)) <= 0 || g.Length > message.MaxBlock) {
			t.Errorf("%+v", g)
		}
	})
}
