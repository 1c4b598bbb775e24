package daemon

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/pflag"
	"go.uber.org/zap"

	"kctl/proto/release"
)

// Unused is a setting of the upstream program that has no effect in ours: a flag,
// a field of the configuration file, or both. It is accepted so that a manifest
// of the upstream program starts ours too, as long as it asks for nothing that
// ours does not do.
type Unused struct {
	Flag, Field string
	// Values are those that say what this program does anyway, upstream's default
	// first; all others are refused. If there are none, any value is accepted, and
	// logged.
	Values []string
	// Switch says that the flag may stand without a value, meaning true.
	Switch bool
	// Number says that it is a number that is not negative.
	Number bool
	// Why says why nothing needs to be set, or where it is set instead.
	Why string
}

// Off are the values that switch off something that this program does not have.
var Off = []string{"", "false", "0", "none", "None", "[]", "map[]"}

const (
	allMetricsServed = "all metrics are served; drop the ones you don't want in the scrape configuration"
	logUnbuffered    = "the log is a single, unbuffered stream"

	// OneVersion is why no other version can be asked for.
	OneVersion = "this program implements Kubernetes " + release.Kubernetes
)

// UnusedLogging are flags of every upstream program on its log.
var UnusedLogging = []Unused{
	{Flag: "log-flush-frequency", Why: logUnbuffered},
	{Flag: "log-json-info-buffer-size", Values: Off, Why: logUnbuffered},
	{Flag: "log-json-split-stream", Switch: true, Values: Off, Why: logUnbuffered},
	{Flag: "log-text-info-buffer-size", Values: Off, Why: logUnbuffered},
	{Flag: "log-text-split-stream", Switch: true, Values: Off, Why: logUnbuffered},
	{Flag: "vmodule", Values: Off, Why: "-v applies to the whole program"},
}

// UnusedComponent are those, and the other flags that upstream's API server and
// scheduler share.
var UnusedComponent = append([]Unused{
	{Flag: "allow-metric-labels", Values: Off, Why: allMetricsServed},
	{Flag: "allow-metric-labels-manifest", Values: Off, Why: allMetricsServed},
	{Flag: "disabled-metrics", Values: Off, Why: allMetricsServed},
	{Flag: "show-hidden-metrics-for-version", Values: Off, Why: "no metrics are hidden"},
	{Flag: "emulated-version", Values: []string{"kube=" + release.Kubernetes, release.Kubernetes}, Why: OneVersion},
	{Flag: "min-compatibility-version", Values: []string{"kube=" + release.Previous, release.Previous}, Why: OneVersion},
	{Flag: "permit-address-sharing", Switch: true, Why: "addresses can always be shared"},
	{Flag: "tls-curve-preferences", Values: Off, Why: "the curves are those of Go's TLS library"},
}, UnusedLogging...)

// Check refuses all values but those that say what is done anyway.
func (u Unused) Check(value string) error {
	if _, err := strconv.ParseUint(value, 10, 31); u.Number && err != nil {
		return fmt.Errorf("%q is not a non-negative integer", value)
	}
	switch {
	case u.Values == nil, slices.Contains(u.Values, value):
		return nil
	case u.Why != "":
		return fmt.Errorf("not supported: %s", u.Why)
	case u.Values[0] != "":
		return fmt.Errorf("not supported; the only supported value is %s", u.Values[0])
	}
	return errors.New("not supported")
}

// AddUnused adds such flags, hidden from help.
func AddUnused(fs *pflag.FlagSet, unused ...Unused) {
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

// LogUnused logs those that were given and have no effect whatever their value.
func LogUnused(logger *zap.Logger, fs *pflag.FlagSet) {
	fs.Visit(func(f *pflag.Flag) {
		if u, ok := f.Value.(*unusedValue); ok && u.Values == nil {
			logger.Info("this flag has no effect", zap.String("flag", f.Name), zap.String("value", u.text), zap.String("why", u.Why))
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
