package server

import (
	admissionchain "kctl/apiserver/internal/admission/chain"
	"kctl/apiserver/internal/admission/match/equivalent"
	"kctl/apiserver/internal/audit"
	"kctl/apiserver/internal/fairness/configcontroller"
	"kctl/proto/daemon"
)

// policy is what becomes of requests that are allowed: which are written down, which
// wait, and what may be stored.
type policy struct {
	auditor   *audit.Auditor               // nil for none
	fairness  *configcontroller.Controller // nil for none
	admission *admissionchain.Control
}

func newPolicy(a *api, access *access) (*policy, error) {
	auditor, err := newAuditor(a.process)
	if err != nil {
		return nil, err
	}
	admission, err := admissionchain.New(admissionchain.Options{
		Flags: a.options, Resources: a.objects.resources, Stores: a.stores, Forms: equivalent.New(a.served, a.objects.definitions),
		Webhooks: a.objects.webhooks, Authorizer: access.authorizer, Rules: access.roles, Audited: auditor != nil,
		Metrics: a.metrics, Clock: a.clock, Logger: a.logger,
	})
	if err != nil {
		return nil, err
	}
	p := &policy{auditor: auditor, admission: admission}
	if a.options.EnablePriorityAndFairness {
		p.fairness = configcontroller.New(a.objects.flowControl())
	}
	return p, nil
}

// newAuditor makes the auditor that the flags ask for; nil if they ask for none.
func newAuditor(p *process) (*audit.Auditor, error) {
	o := p.options.Audit
	if o.PolicyFile == "" {
		return nil, nil
	}
	policy, err := audit.LoadPolicy(o.PolicyFile)
	if err != nil || o.Log.Path == "" && o.WebhookConfigFile == "" { // an invalid policy is an error even if it is not used
		return nil, err
	}
	lost := audit.NewErrors(p.metrics)
	var sinks []audit.Sink
	if o.Log.Path != "" {
		log, err := audit.NewLog(o.Log)
		if err != nil {
			return nil, err
		}
		sinks = append(sinks, audit.NewSink(log, o.LogSink, lost, p.clock, p.logger))
	}
	if o.WebhookConfigFile != "" {
		webhook, err := audit.NewWebhook(o.WebhookConfigFile, o.WebhookInitialBackoff, p.clock, daemon.LogFileProblems(p.logger))
		if err != nil {
			return nil, err
		}
		sinks = append(sinks, audit.NewSink(webhook, o.WebhookSink, lost, p.clock, p.logger))
	}
	return audit.New(policy, sinks, p.metrics, p.clock), nil
}
