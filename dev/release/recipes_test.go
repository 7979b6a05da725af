package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// recipes are the commands of docs/ci.md that need no service of anyone's, by the headings that they are below.
func recipes(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile(repository + "/docs/ci.md")
	testrig.Must(t, err)
	steps := map[string]*regexp.Regexp{
		"GitHub Actions": regexp.MustCompile(`(?ms)^- run: \|\n(.*?)^` + "```"),
		"GitLab":         regexp.MustCompile(`(?ms)^  script:\n(.*?)^` + "```"),
		"Dev containers": regexp.MustCompile(`"postCreateCommand": "(.*?)"`),
	}
	found := make(map[string]string)
	for heading, step := range steps {
		_, section, _ := strings.Cut(string(page), "## "+heading+"\n")
		commands := step.FindStringSubmatch(section)
		if commands == nil {
			t.Fatalf("there are no commands for %s", heading)
		}
		found[heading] = regexp.MustCompile(`(?m)^ *(- )?`).ReplaceAllString(commands[1], "")
	}
	return found
}

// followsRecipes runs the commands of docs/ci.md in a bare Debian, with the release from here. Who is root there has no
// sudo.
func followsRecipes(t *testing.T, r *release) {
	server := httptest.NewServer(http.FileServer(http.Dir(r.out)))
	defer server.Close()
	root := bareDebian(t, "bookworm")
	for heading, commands := range recipes(t) {
		commands = strings.ReplaceAll(commands, "https://github.com/goiwarp/iwarp/releases/latest/download", server.URL)
		testrig.Must(t, os.WriteFile(filepath.Join(root, "recipe"), []byte("set -ex\nsudo() { \"$@\"; }\n"+
			"apt-get update >/dev/null && apt-get install --yes curl ca-certificates >/dev/null\n"+commands+"\n"), 0o644))
		said := inside(t, root, "PATH=/usr/local/bin:$PATH IWARP_FROM="+server.URL+" sh /recipe 2>&1")
		if !strings.Contains(said, "installed iwarp") || strings.Contains(commands, "iwarp run") && !strings.Contains(said, "rdma-ping-9:") {
			t.Errorf("%s: %s", heading, said)
		}
		inside(t, root, "rm -rf /usr/local/bin/iwarp /usr/local/lib/iwarp")
	}
}
