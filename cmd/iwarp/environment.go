package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// services are the commands whose options can also be set by environment variables, as units and containers do.
func services() []string { return []string{"serve", "disk"} }

// fromEnvironment has a variable stand for each option of a service that the command line does not set.
func fromEnvironment(k *kong.Kong) error {
	for _, command := range k.Model.Children {
		for _, flag := range command.Flags {
			if isService(command.Name) && flag.Name != "help" && flag.Name != "version" {
				flag.Envs = []string{variable(command.Name, flag.Name)}
				flag.Value.Tag.Envs = flag.Envs
			}
		}
	}
	return nil
}

// variable is the name of the variable of an option: IWARP_SERVE_MAX_CONNECTIONS of --max-connections.
func variable(command, flag string) string {
	return "IWARP_" + strings.ToUpper(command+"_"+strings.ReplaceAll(flag, "-", "_"))
}

func isService(command string) bool { return slices.Contains(services(), command) }

// variables are those of all options of a service.
func variables(command *kong.Node) (names []string) {
	for _, flag := range command.Flags {
		names = append(names, flag.Envs...)
	}
	return names
}

// warnOfVariables names the variables that look as if they set an option of a service, and set none.
func warnOfVariables(w io.Writer, command *kong.Node) {
	if command == nil || !isService(command.Name) {
		return
	}
	known := variables(command)
	for _, assignment := range os.Environ() {
		name, _, _ := strings.Cut(assignment, "=")
		if strings.HasPrefix(name, variable(command.Name, "")) && !slices.Contains(known, name) && !ofKubernetes(name) {
			text := fmt.Sprintf("the variable %s sets no option%s", name,
				instead(name, variable(command.Name, ""), known))
			if logsJSON(command) {
				slog.New(slog.NewJSONHandler(w, nil)).Warn(text)
			} else {
				fmt.Fprintf(w, "iwarp: %s: %s\n", command.Name, text)
			}
		}
	}
}

// logsJSON reports whether a service is to log in JSON.
func logsJSON(command *kong.Node) bool {
	flag := flagOf(command, func(f *kong.Flag) bool { return f.Name == "log" })
	return flag != nil && flag.Target.String() == "json"
}

// instead names the variable that may be meant.
func instead(name, prefix string, known []string) string {
	if on := prefix + strings.TrimPrefix(name, prefix+"NO_"); slices.Contains(known, on) {
		return fmt.Sprintf(" (did you mean %s=false?)", on)
	}
	return suggestOf(name, len(name)-len(prefix), known)
}

// A variableError is an error about the value of an option that a variable has set.
type variableError struct {
	error
	option, variable string
}

// Unwrap returns the error as it was.
func (e *variableError) Unwrap() error { return e.error }

// fromKong is what kong adds to the error of a variable's value.
var fromKong = regexp.MustCompile(` \(from envar \S+=".*"\)$`)

// Error names the variable in place of the option, which nobody has given.
//
//housecheck:texts It prints: all errors of options are named in one way.
func (e *variableError) Error() string {
	text := fromKong.ReplaceAllString(e.error.Error(), "")
	return strings.Replace(text, ": "+e.option+": ", ": variable "+e.variable+": ", 1)
}

// blamed has an error name the variable that it is about.
//
//housecheck:texts It prints: all errors of options are named in one way.
func blamed(c *kong.Context, err error) error {
	command := c.Selected()
	if command == nil || err == nil || !isService(command.Name) {
		return err
	}
	for _, flag := range command.Flags {
		option := "--" + flag.Name
		if strings.Contains(err.Error(), command.Name+": "+option+": ") && byVariable(c, flag) {
			return &variableError{err, option, flag.Envs[0]}
		}
	}
	return err
}

// byVariable reports whether a variable has set an option that the command line does not.
func byVariable(c *kong.Context, flag *kong.Flag) bool {
	given := slices.ContainsFunc(c.Path, func(p *kong.Path) bool { return p.Flag == flag })
	return !given && slices.ContainsFunc(flag.Envs, func(name string) bool { return os.Getenv(name) != "" })
}

// ofKubernetes reports whether Kubernetes sets a variable of such a name, for a Service with the name of ours.
func ofKubernetes(name string) bool {
	return strings.Contains(name, "_SERVICE_") || strings.Contains(name+"_", "_PORT_")
}

// withoutVariables is kong's help of a value: one line below tells of the variables of all.
func withoutVariables(value *kong.Value) string { return value.Help }

// environmentText says how the options of a service are set without a command line.
func environmentText(command string) string {
	return "A variable can set each option that the command line does not: " + variable(command, "metrics") +
		" for --metrics, and so on."
}
