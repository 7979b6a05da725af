package main

import (
	"os"
	"regexp"
	"runtime/debug"
	"testing"

	"github.com/goiwarp/iwarp/internal/testrig"
)

// TestVersionName: a build without a release's tag is named after the release that it is on the way to.
func TestVersionName(t *testing.T) {
	for module, want := range map[string]string{
		"(devel)":                            next + "-dev",
		"v0.0.0-20261127230545-0123456789ab": next + "-dev",
		"v0.1.0":                             "v0.1.0",
		"v0.1.1-0.20261127230545-0123456789ab+dirty": "v0.1.1-0.20261127230545-0123456789ab+dirty",
	} {
		info := new(debug.BuildInfo)
		info.Main.Version = module
		if got := versionName(info); got != want || versionOf(info).Version != want {
			t.Errorf("%s is %s, and %s in JSON; want %s", module, got, versionOf(info).Version, want)
		}
	}
}

// TestVersionOfChangelog: the changelog begins with the version of the code.
func TestVersionOfChangelog(t *testing.T) {
	text, err := os.ReadFile("../../CHANGELOG.md")
	testrig.Must(t, err)
	heading := regexp.MustCompile(`(?m)^## (\S+), `).FindSubmatch(text)
	if heading == nil || "v"+string(heading[1]) != next {
		t.Errorf("CHANGELOG.md begins with %q, and the code is %s", heading, next)
	}
}
