// Command teamnodes is a scheduler with a plugin of its own: pods of a team run
// on that team's nodes only. A configuration enables it (scheduler.yaml);
// everything else is the usual scheduler.
package main

import (
	"context"
	"encoding/json"

	"kctl/scheduler/command"
	"kctl/scheduler/framework"
)

// teamNodes has one argument: the label that names the team.
type teamNodes struct {
	Label string `json:"label"`
}

// Name implements framework.Plugin.
func (*teamNodes) Name() string { return "TeamNodes" }

// Filter implements framework.Filter.
func (t *teamNodes) Filter(_ context.Context, _ *framework.CycleState, pod *framework.PodInfo, node *framework.NodeInfo) *framework.Status {
	if pod.Pod.Labels[t.Label] != node.Node.Labels[t.Label] {
		return framework.NewStatus(framework.UnschedulableAndUnresolvable, "node(s) belonged to another team")
	}
	return nil
}

// SignPod implements framework.Sign: pods of one team get the same answers, which
// the scheduler may remember.
func (t *teamNodes) SignPod(pod *framework.PodInfo, to *framework.Signature) {
	to.String(pod.Pod.Labels[t.Label])
}

// EventsToRegister implements framework.EnqueueExtensions: a node that comes or gets
// another label may be the team's.
func (*teamNodes) EventsToRegister() []framework.ClusterEventWithHint {
	return []framework.ClusterEventWithHint{{Resource: framework.NodeEvent, ActionType: framework.Add | framework.UpdateNodeLabel}}
}

func newTeamNodes(arguments json.RawMessage, _ framework.Handle) (framework.Plugin, error) {
	plugin := &teamNodes{Label: "team"}
	return plugin, framework.Arguments(arguments, plugin)
}

func main() { command.Main(map[string]framework.Factory{"TeamNodes": newTeamNodes}) }
