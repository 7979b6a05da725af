package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// revision2 is a dissector for what Wireshark does not read of MPA's startup.
//
//go:embed mpa2.lua
var revision2 string

// Folders as tshark -G folders names them. Wireshark has one for extcap that is the user's own from 4.2 on.
const (
	personalLua    = "Personal Lua Plugins"
	personalExtcap = "Personal Extcap path"
	globalExtcap   = "Global Extcap path"
	oldExtcap      = "Extcap path"
)

// install puts a script for Wireshark into a folder of the user's, or says what root must do, and the dissector into
// another.
func (c *extcapCmd) install(ctx context.Context, std streams) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("extcap: %w", err)
	}
	if c.Dir != "" {
		return installScript(std.out, c.Dir, program)
	}
	out, err := exec.CommandContext(ctx, "tshark", "-G", "folders").Output()
	if err != nil {
		return fmt.Errorf("extcap: tshark -G folders: %w: name Wireshark's folder by --dir", err)
	}
	folders := foldersOf(string(out))
	if dir := folders[personalLua]; dir != "" {
		if err := installFile(filepath.Join(dir, "iwarp_mpa2.lua"), revision2, 0o644); err != nil {
			return err
		}
		fmt.Fprintf(std.out, "installed %s: IRD, ORD and RTR in MPA's startup frames\n", filepath.Join(dir, "iwarp_mpa2.lua"))
	}
	if dir := folders[personalExtcap]; dir != "" {
		return installScript(std.out, dir, program)
	}
	for _, name := range []string{globalExtcap, oldExtcap} {
		if dir := folders[name]; dir != "" {
			_, err := fmt.Fprintf(std.out, "This Wireshark has no folder for extcap of your own. As root:\n    %s extcap --install --dir %s\n", program, dir)
			return err
		}
	}
	return errors.New("extcap: tshark -G folders names no folder for extcap: name it by --dir")
}

// foldersOf takes apart what tshark -G folders prints. Of several under a name the first counts.
func foldersOf(text string) map[string]string {
	folders := map[string]string{}
	for line := range strings.Lines(text) {
		name, path, _ := strings.Cut(line, ":")
		if folders[name] == "" {
			folders[name] = strings.TrimSpace(path)
		}
	}
	return folders
}

// installScript installs what Wireshark calls.
func installScript(out io.Writer, dir, program string) error {
	name, script := extcapScript(program)
	path := filepath.Join(dir, name)
	if err := installFile(path, script, 0o755); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "installed %s: choose iwarp among Wireshark's interfaces, or tshark -i iwarp\n", path)
	return err
}

func installFile(path, content string, mode os.FileMode) error {
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(content), mode)
	}
	if err != nil {
		return fmt.Errorf("extcap: --install: %w", err)
	}
	return nil
}

// extcapScript is a program for Wireshark, which calls one without a command.
func extcapScript(program string) (name, script string) {
	if runtime.GOOS == "windows" {
		return "iwarp.bat", fmt.Sprintf("@\"%s\" extcap %%*\r\n", program)
	}
	quoted := "'" + strings.ReplaceAll(program, "'", `'\''`) + "'"
	return "iwarp", "#!/bin/sh\nexec " + quoted + " extcap \"$@\"\n"
}
