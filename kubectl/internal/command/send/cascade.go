package send

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cascade is the value of --cascade: what becomes of the dependents of objects that are
// deleted.
type Cascade string

// cascades are the values, in the command line's words and in the API's.
var cascades = map[Cascade]metav1.DeletionPropagation{
	"background": metav1.DeletePropagationBackground,
	"foreground": metav1.DeletePropagationForeground,
	"orphan":     metav1.DeletePropagationOrphan,
}

// Add adds the flag.
func (c *Cascade) Add(fs *pflag.FlagSet, usage string) {
	fs.StringVar((*string)(c), "cascade", "background", usage)
	fs.Lookup("cascade").NoOptDefVal = "background"
}

// CascadeUsage is the flag's help where nothing else is to be said.
const CascadeUsage = `Must be "background", "orphan", or "foreground".`

// Settle checks the value, and reads it as the boolean that it was once.
func (c *Cascade) Settle(warn io.Writer) error {
	if _, known := cascades[*c]; known {
		return nil
	}
	dependents, err := strconv.ParseBool(string(*c))
	if err != nil {
		return fmt.Errorf(`invalid cascade value (%v). Must be "background", "foreground", or "orphan"`, *c)
	}
	was := *c
	if *c = "background"; !dependents {
		*c = "orphan"
	}
	fmt.Fprintf(warn, "warning: --cascade=%s is deprecated (boolean value) and can be replaced with --cascade=%s.\n", was, *c)
	return nil
}

// Propagation is the API's word for a settled value.
func (c Cascade) Propagation() *metav1.DeletionPropagation {
	return new(cascades[c])
}
