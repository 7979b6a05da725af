package iwarp_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp"
)

// Both ends in one program: the server offers memory, the client writes to it
// and reads it back.
func ExampleDial() {
	ctx := context.Background()
	pd, err := iwarp.NewRNIC(iwarp.RNICConfig{}).AllocPD()
	check(err)
	offered, err := pd.Register(make([]byte, 5), iwarp.RemoteRead|iwarp.RemoteWrite)
	check(err)
	ln, err := iwarp.Listen(ctx, "tcp", "127.0.0.1:0", iwarp.ListenConfig{PD: pd})
	check(err)
	defer ln.Close()
	go func() {
		req, err := ln.Accept(ctx)
		check(err)
		_, err = req.Accept(ctx, iwarp.AcceptConfig{})
		check(err)
	}()

	qp, err := iwarp.Dial(ctx, "tcp", ln.Addr().String())
	check(err)
	defer qp.Close()
	mine, err := qp.PD().Register([]byte("hello....."), iwarp.LocalWrite)
	check(err)
	_, err = qp.Write(ctx, mine.Slice(0, 5), offered.Remote(0))
	check(err)
	_, err = qp.Read(ctx, mine.Slice(5, 5), offered.Remote(0))
	check(err)
	fmt.Printf("%s\n", mine.Bytes())
	// Output: hellohello
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// TestCaptureRecipes: whoever is told to decode what tcpdump writes while that goes on is told to have it written packet by
// packet, or it would be seen in pieces of a buffer's size.
func TestCaptureRecipes(t *testing.T) {
	recipes := 0
	for _, file := range []string{"docs/command.md", "docs/troubleshooting.md", "cmd/iwarp/decode.go"} {
		text, err := os.ReadFile(file)
		must(t, err)
		for _, recipe := range regexp.MustCompile("tcpdump [^|`\n]*-w - ?").FindAllString(string(text), -1) {
			recipes++
			if !strings.Contains(recipe, "-U ") {
				t.Errorf("%s: %q has no -U", file, recipe)
			}
		}
	}
	if recipes != 3 {
		t.Errorf("found %d recipes, want 3", recipes)
	}
}

// The program in README.md is the one above, which compiles and runs.
func TestReadmeProgram(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	must(t, err)
	source, err := os.ReadFile("readme_test.go")
	must(t, err)
	_, body, _ := strings.Cut(string(source), "func ExampleDial() {\n")
	body, _, _ = strings.Cut(body, "\t// Output:")
	if !strings.Contains(string(readme), "func main() {\n"+body+"}\n") {
		t.Errorf("README.md shows another program than ExampleDial, which is\n%s", body)
	}
}

// TestReadmeFigures: what README.md says of performance is what docs/performance.md has.
func TestReadmeFigures(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	must(t, err)
	measured, err := os.ReadFile("docs/performance.md")
	must(t, err)
	rows := regexp.MustCompile(`(?m)^\| (\d+ \w+ \w+) \| (\w+) \| (\S+ \(.*?\)|busy: .*?) \| (\S+ \(.*?\)|busy: .*?) \|$`).FindAllStringSubmatch(string(readme), -1)
	if len(rows) < 6 {
		t.Errorf("only %d rows", len(rows))
	}
	for _, row := range rows {
		for i, cc := range []string{"bbr", "reno"} {
			want := fmt.Sprintf(`(?m)^\| %s \| %s \| %s \| [^|]+ \| %s \|`, row[1], cc, row[2], regexp.QuoteMeta(row[3+i]))
			if !regexp.MustCompile(want).Match(measured) {
				t.Errorf("docs/performance.md has other figures with %s: %s", cc, row[0])
			}
		}
	}
}

// TestReadmeLinks looks for what README.md refers to.
func TestReadmeLinks(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	must(t, err)
	links := regexp.MustCompile(`\]\(([^):#]+)\)`).FindAllStringSubmatch(string(readme), -1)
	if len(links) < 20 {
		t.Errorf("only %d links", len(links))
	}
	for _, link := range links {
		if _, err := os.Stat(link[1]); err != nil {
			t.Errorf("README.md refers to %s: %v", link[1], err)
		}
	}
}
