package daemon

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"
	"go.uber.org/zap"
)

// Unused is a setting of the upstream program with nothing behind it in this one:
// a flag, a field of the program's configuration file, or both.
// Whoever comes with a manifest of that program starts ours with it, as long as
// it asks for nothing that ours does not do.
type Unused struct {
	Flag, Field string
	// Values say what this program does anyway, the first being upstream's default;
	// all others are refused. With none any value will do, and is noted.
	Values []string
	// Switch says that the flag may stand without a value, for true.
	Switch bool
	// Why says why nothing needs to be set, or where it is set instead.
	Why string
}

// Off are the values that say of what can't be had that it is not wanted.
var Off = []string{"", "false", "0", "none", "None", "[]", "map[]"}

// Check refuses all values but those that say what is done anyway.
func (u Unused) Check(value string) error {
	switch {
	case u.Values == nil, slices.Contains(u.Values, value):
		return nil
	case u.Why != "":
		return fmt.Errorf("not supported: %s", u.Why)
	case u.Values[0] != "":
		return fmt.Errorf("not supported, only %s is", u.Values[0])
	}
	return errors.New("not supported")
}

// AddUnused adds such flags, which help does not show.
func AddUnused(fs *pflag.FlagSet, unused []Unused) {
	for _, u := range unused {
		if u.Flag == "" {
			continue
		}
		value := &unusedValue{Unused: u}
		if len(u.Values) > 0 {
			value.text = u.Values[0]
		}
		flag := fs.VarPF(value, u.Flag, "", "")
		flag.Hidden = true
		if u.Switch {
			flag.NoOptDefVal = "true"
		}
	}
}

// LogUnused notes those that were given though any value will do.
func LogUnused(logger *zap.Logger, fs *pflag.FlagSet) {
	fs.Visit(func(f *pflag.Flag) {
		if u, ok := f.Value.(*unusedValue); ok && u.Values == nil {
			logger.Info("a flag changes nothing", zap.String("flag", f.Name), zap.String("value", u.text), zap.String("why", u.Why))
		}
	})
}

type unusedValue struct {
	Unused
	text string
}

func (v *unusedValue) String() string { return v.text }
func (v *unusedValue) Type() string   { return "value" }
func (v *unusedValue) Set(text string) error {
	if err := v.Check(text); err != nil {
		return err
	}
	v.text = text
	return nil
}
