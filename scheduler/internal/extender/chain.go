package extender

import (
	"context"
	"fmt"

	"go.uber.org/zap"
	configv1 "k8s.io/kube-scheduler/config/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"kctl/proto/core"
	"kctl/proto/daemon"
	"kctl/scheduler/framework"
)

// Chain has all extenders in the order in which they are called: that of the
// configuration, ignorable ones last. A nil Chain has none. It is safe for
// concurrent use.
type Chain struct {
	extenders []*Extender
	logger    *zap.Logger
}

// NewChain returns a chain of the configured extenders, nil without any.
func NewChain(configs []configv1.Extender, logger *zap.Logger) (*Chain, error) {
	if len(configs) == 0 {
		return nil, nil
	}
	c := &Chain{logger: logger}
	var last []*Extender
	binder := false
	for i, config := range configs {
		e, err := newExtender(config, logger)
		if err != nil {
			return nil, fmt.Errorf("extenders[%d].%w", i, err)
		}
		if binder && e.BindVerb != "" {
			return nil, fmt.Errorf("extenders[%d].bindVerb: only one extender can implement bind", i)
		}
		binder = binder || e.BindVerb != ""
		if e.Ignorable {
			last = append(last, e)
		} else {
			c.extenders = append(c.extenders, e)
		}
	}
	c.extenders = append(c.extenders, last...)
	return c, nil
}

// Empty reports whether there are no extenders.
func (c *Chain) Empty() bool { return c == nil || len(c.extenders) == 0 }

// asked are the extenders that have a verb and are interested in the pod.
func (c *Chain) asked(pod *core.Pod, verb func(*Extender) string) []*Extender {
	if c == nil {
		return nil
	}
	var asked []*Extender
	for _, e := range c.extenders {
		if verb(e) != "" && e.interested(pod) {
			asked = append(asked, e)
		}
	}
	return asked
}

// pass reports whether things go on without an extender that failed.
func (c *Chain) pass(e *Extender, pod *core.Pod, err error) bool {
	if e.Ignorable {
		c.logger.Warn("extender is passed over", daemon.PodFields(pod), zap.Error(err))
	}
	return e.Ignorable
}

// Prioritize passes each extender's scores to take, on the plugins' scale and
// weighted. An extender that fails gives none.
func (c *Chain) Prioritize(ctx context.Context, pod *core.Pod, nodes []*framework.NodeInfo,
	take func(scores map[string]int64, weight int64)) {
	for _, e := range c.asked(pod, func(e *Extender) string { return e.PrioritizeVerb }) {
		var answer extenderv1.HostPriorityList
		if err := e.ask(ctx, e.PrioritizeVerb, e.arguments(pod, nodes), &answer); err != nil {
			c.logger.Warn("extender does not rank nodes", daemon.PodFields(pod), zap.Error(err))
			continue
		}
		scores := make(map[string]int64, len(answer))
		for _, host := range answer {
			// Extenders that rank from 0 to 100 work with kube-scheduler, too.
			score := min(max(host.Score, -maxScore), maxScore)
			scores[host.Host] = score * (framework.MaxNodeScore / extenderv1.MaxExtenderPriority)
		}
		take(scores, e.Weight)
	}
}

// Binds reports whether there is an extender that binds the pod.
func (c *Chain) Binds(pod *core.Pod) bool { return len(c.binders(pod)) > 0 }

func (c *Chain) binders(pod *core.Pod) []*Extender {
	return c.asked(pod, func(e *Extender) string { return e.BindVerb })
}

// Bind lets the binding extender bind the pod; bound is false if there is none,
// or if an ignorable one failed.
func (c *Chain) Bind(ctx context.Context, pod *core.Pod, node string) (bound bool, err error) {
	binders := c.binders(pod)
	if len(binders) == 0 {
		return false, nil
	}
	e, answer := binders[0], &extenderv1.ExtenderBindingResult{}
	err = e.ask(ctx, e.BindVerb, &extenderv1.ExtenderBindingArgs{
		PodName: pod.Name, PodNamespace: pod.Namespace, PodUID: pod.UID, Node: node,
	}, answer)
	if err == nil && answer.Error != "" {
		err = fmt.Errorf("extender at %s: %s", e.URLPrefix, short(answer.Error))
	}
	if err != nil && c.pass(e, pod, err) {
		return false, nil
	}
	return true, err
}
