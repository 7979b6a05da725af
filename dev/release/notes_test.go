package main

import (
	"strings"
	"testing"
	"time"

	"github.com/goiwarp/iwarp/internal/testrig"
)

const changelog = `# Changelog

## 1.2.0, 2026-03-04

- **New** pages ([docs/pages.md](docs/pages.md#one), [Go](https://go.dev)).

## 1.1.0, 2026-01-02

- **Fixed** things.
`

// TestNotes: the notes of a release are the first section, with links that work elsewhere.
func TestNotes(t *testing.T) {
	n, err := readNotes(changelog)
	testrig.Must(t, err)
	want := "- **New** pages ([docs/pages.md](" + project + "/blob/v1.2.0/docs/pages.md#one), [Go](https://go.dev)).\n"
	if got := n.page("v1.2.0"); n.version != "v1.2.0" || got != want {
		t.Errorf("%s: %q, want %q", n.version, got, want)
	}
	if _, err := readNotes("# Changelog\n"); err == nil {
		t.Error("an empty changelog has notes")
	}
}

// TestNotesCheck: a release has the changelog's version and date, and a commit without a tag has a lower version.
func TestNotesCheck(t *testing.T) {
	n, err := readNotes(changelog)
	testrig.Must(t, err)
	testrig.Must(t, n.check("v1.2.0"))
	if err := n.check("v1.3.0"); err == nil || !strings.Contains(err.Error(), "v1.2.0") {
		t.Errorf("another tag: %v", err)
	}
	n.when = "not released yet"
	if err := n.check("v1.2.0"); err == nil || !strings.Contains(err.Error(), "date") {
		t.Errorf("no date: %v", err)
	}
	at := time.Date(2026, 2, 3, 4, 5, 6, 0, time.FixedZone("", 3600))
	if got := n.unreleased(at, "0123456789abcdef"); got != "v1.2.0-dev.20260203030506.g0123456789ab" {
		t.Error(got)
	}
}

// TestTagged: a commit has one tag of a release at most. Other tags do not count.
func TestTagged(t *testing.T) {
	for tags, want := range map[string]string{"": "", "latest\nv1.0\nv1.2.0-rc1": "", "latest\nv1.2.0\n": "v1.2.0"} {
		if got, err := tagged(tags); got != want || err != nil {
			t.Errorf("%q: %q, %v, want %q", tags, got, err, want)
		}
	}
	if got, err := tagged("v1.2.0\nv1.3.0\n"); err == nil {
		t.Errorf("two tags: %s", got)
	}
}
