package framework

import (
	"encoding/json"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"kctl/proto/core"
	"kctl/proto/rest"
)

// Factory makes a plugin, once for each profile that enables it. arguments is
// the JSON of its pluginConfig, empty where there is none; Arguments reads it.
type Factory func(arguments json.RawMessage, handle Handle) (Plugin, error)

// Handle is what plugins can use besides their arguments. All of it is safe for
// concurrent use.
type Handle struct {
	// Client reaches the API server with the scheduler's rights.
	Client *rest.Client
	Clock  clock.Clock
	Logger *zap.Logger
	// Namespaces gives the labels of a namespace, nil if it is not known.
	Namespaces func(name string) labels.Set
	// Waiting are the pods that Permit plugins hold back.
	Waiting WaitingPods
}

// WaitingPods are the pods of all profiles that wait for a Permit plugin.
type WaitingPods interface {
	Get(uid types.UID) (pod WaitingPod, waits bool)
	All() []WaitingPod
}

// WaitingPod has its room on a node and waits to be bound.
type WaitingPod interface {
	Pod() *core.Pod
	Node() string
	// Pending are the plugins that have not allowed it yet.
	Pending() []string
	// Allow ends the waiting for the named plugin. The pod goes on when no other
	// plugin makes it wait.
	Allow(plugin string)
	// Reject ends the waiting; the pod gives up its room and is tried again
	// when one of the plugin's events comes.
	Reject(plugin, reason string)
}

// Arguments decodes a plugin's arguments strictly. Without any, into stays as
// it is.
func Arguments(arguments json.RawMessage, into any) error {
	if len(arguments) == 0 {
		return nil
	}
	return core.DecodeStrict(arguments, into)
}
