package command

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"runtime/trace"

	"github.com/spf13/cobra"
)

// profile is what --profile has recorded while a command runs.
type profile struct {
	kind, path string
	file       *os.File
}

// addProfile adds the flags by which developers of kctl see where its time goes.
func addProfile(root *cobra.Command) *profile {
	p := &profile{}
	fs := root.PersistentFlags()
	fs.StringVar(&p.kind, "profile", "none", "Name of profile to capture. One of (none|cpu|heap|goroutine|threadcreate|block|mutex|trace)")
	fs.StringVar(&p.path, "profile-output", "profile.pprof", "Name of the file to write the profile to")
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return p.begin() }
	return p
}

func (p *profile) begin() (err error) {
	switch p.kind {
	case "none":
		return nil
	case "cpu", "trace":
	case "block":
		runtime.SetBlockProfileRate(1)
	case "mutex":
		runtime.SetMutexProfileFraction(1)
	default:
		if pprof.Lookup(p.kind) == nil {
			return fmt.Errorf("unknown profile '%s'", p.kind)
		}
	}
	if p.file, err = os.Create(p.path); err != nil {
		return fmt.Errorf("--profile-output: %w", err)
	}
	switch p.kind {
	case "cpu":
		return pprof.StartCPUProfile(p.file)
	case "trace":
		return trace.Start(p.file)
	}
	return nil
}

// end writes what was recorded, if --profile asked for it.
func (p *profile) end() error {
	if p.file == nil {
		return nil
	}
	var err error
	switch p.kind {
	case "cpu":
		pprof.StopCPUProfile()
	case "trace":
		trace.Stop()
	default:
		if p.kind == "heap" {
			runtime.GC()
		}
		err = pprof.Lookup(p.kind).WriteTo(p.file, 0)
	}
	if err = errors.Join(err, p.file.Close()); err != nil {
		return fmt.Errorf("writing the profile: %w", err)
	}
	return nil
}
