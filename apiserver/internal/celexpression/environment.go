package celexpression

import (
	"fmt"
	"sync"

	"github.com/google/cel-go/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// Origin says where an expression comes from, which decides which libraries it
// may use.
type Origin = environment.Type

const (
	// New is for what a user writes now: only what the previous release
	// understands, too, so that a cluster can be downgraded.
	New = environment.NewExpressions
	// Stored is for stored expressions: everything that any release allowed.
	Stored = environment.StoredExpressions
)

// baseEnvironment takes some milliseconds and megabytes, which servers without expressions
// save.
var baseEnvironment = sync.OnceValue(func() *environment.EnvSet {
	return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
})

// Environment is what expressions see: Kubernetes' libraries, the caller's
// types, and what options add (mostly variables). It is expensive to make;
// callers keep it.
func Environment(types []*apiservercel.DeclType, options ...cel.EnvOption) (*environment.EnvSet, error) {
	return Extend(baseEnvironment(), types, options...)
}

// Extend returns an environment with additions.
func Extend(set *environment.EnvSet, types []*apiservercel.DeclType, options ...cel.EnvOption) (*environment.EnvSet, error) {
	set, err := set.Extend(environment.VersionedOptions{
		IntroducedVersion: environment.DefaultCompatibilityVersion(),
		DeclTypes:         types,
		EnvOptions:        options,
	})
	if err != nil {
		return nil, fmt.Errorf("extend the CEL environment: %w", err)
	}
	return set, nil
}
