package daemon

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func flagsWithUnused() *pflag.FlagSet {
	fs := pflag.NewFlagSet("program", pflag.ContinueOnError)
	AddUnused(fs,
		Unused{Flag: "burst", Why: "nothing is held back"},
		Unused{Flag: "cache", Switch: true, Values: []string{"true"}},
		Unused{Flag: "logs", Switch: true, Values: Off, Why: "the log is elsewhere"},
		Unused{Field: "onlyInTheFile"},
	)
	return fs
}

func TestUnusedFlags(t *testing.T) {
	for _, args := range []string{"", "--burst=7", "--cache", "--cache=true", "--logs=false", "--logs="} {
		if err := flagsWithUnused().Parse(strings.Fields(args)); err != nil {
			t.Errorf("%s: %v", args, err)
		}
	}
	for args, want := range map[string]string{
		"--cache=false": `"--cache" flag: not supported; the only supported value is true`,
		"--logs":        `"--logs" flag: not supported: the log is elsewhere`,
	} {
		if err := flagsWithUnused().Parse(strings.Fields(args)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", args, err, want)
		}
	}
	if text := flagsWithUnused().FlagUsages(); text != "" {
		t.Errorf("help shows flags without an effect: %s", text)
	}
	if value := flagsWithUnused().Lookup("cache").Value.String(); value != "true" {
		t.Errorf("the flag says %q of what is done", value)
	}
}

func TestUnusedFlagsAreNoted(t *testing.T) {
	fs := flagsWithUnused()
	if err := fs.Parse([]string{"--burst=7", "--cache"}); err != nil {
		t.Fatal(err)
	}
	logs, seen := observer.New(zap.InfoLevel)
	LogUnused(zap.New(logs), fs)
	if lines := seen.All(); len(lines) != 1 || lines[0].ContextMap()["flag"] != "burst" || lines[0].ContextMap()["value"] != "7" {
		t.Errorf("noted %+v", lines)
	}
}
