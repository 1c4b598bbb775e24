package leader

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"kctl/proto/core"
)

// Flags are those of an election, by upstream's names.
type Flags struct {
	Enabled                                   bool
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
	Namespace, Name                           string // of the Lease
}

// DefaultFlags are upstream's times, and a Lease of this name in upstream's namespace.
func DefaultFlags(name string) Flags {
	return Flags{
		Enabled: true, LeaseDuration: DefaultLeaseDuration, RenewDeadline: DefaultRenewDeadline, RetryPeriod: DefaultRetryPeriod,
		Namespace: core.NamespaceSystem, Name: name,
	}
}

// Add adds the flags; enabled is what it means to be elected.
func (f *Flags) Add(fs *pflag.FlagSet, enabled string) {
	fs.BoolVar(&f.Enabled, "leader-elect", f.Enabled, enabled)
	fs.DurationVar(&f.LeaseDuration, "leader-elect-lease-duration", f.LeaseDuration,
		"how long other candidates wait for a leader that does not renew its lease")
	fs.DurationVar(&f.RenewDeadline, "leader-elect-renew-deadline", f.RenewDeadline,
		"how long the leader tries to renew its lease before it gives up leadership")
	fs.DurationVar(&f.RetryPeriod, "leader-elect-retry-period", f.RetryPeriod, "interval between attempts to acquire or renew the lease")
	fs.StringVar(&f.Namespace, "leader-elect-resource-namespace", f.Namespace, "namespace of the lease")
	fs.StringVar(&f.Name, "leader-elect-resource-name", f.Name, "name of the lease")
}

// Validate returns an error for flags with which no election can work.
func (f *Flags) Validate() error {
	if !f.Enabled {
		return nil
	}
	if f.Namespace == "" || f.Name == "" {
		return errors.New("--leader-elect-resource-namespace, --leader-elect-resource-name: must not be empty")
	}
	if err := CheckTimes(f.LeaseDuration, f.RenewDeadline, f.RetryPeriod); err != nil {
		return fmt.Errorf("--leader-elect-lease-duration, --leader-elect-renew-deadline, --leader-elect-retry-period: %w", err)
	}
	return nil
}

// Config is what an Elector needs of the flags.
func (f *Flags) Config() Config {
	return Config{
		Namespace: f.Namespace, Name: f.Name, LeaseDuration: f.LeaseDuration, RenewDeadline: f.RenewDeadline,
		RetryPeriod: f.RetryPeriod,
	}
}
