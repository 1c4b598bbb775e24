package server

import (
	"github.com/gin-gonic/gin"

	"kctl/apiserver/internal/audit"
	"kctl/apiserver/internal/filters"
	"kctl/proto/daemon"
)

// newAuditor makes the auditor that the flags ask for; nil if they ask for none.
func (s *Server) newAuditor() (*audit.Auditor, error) {
	o := s.options.Audit
	if o.PolicyFile == "" {
		return nil, nil
	}
	policy, err := audit.LoadPolicy(o.PolicyFile)
	if err != nil || o.Log.Path == "" && o.WebhookConfigFile == "" { // an invalid policy is an error even if it is not used
		return nil, err
	}
	lost := audit.NewErrors(s.metrics)
	var sinks []audit.Sink
	if o.Log.Path != "" {
		log, err := audit.NewLog(o.Log)
		if err != nil {
			return nil, err
		}
		sinks = append(sinks, audit.NewSink(log, o.LogSink, lost, s.clock, s.logger))
	}
	if o.WebhookConfigFile != "" {
		webhook, err := audit.NewWebhook(o.WebhookConfigFile, o.WebhookInitialBackoff, s.clock, daemon.Told(s.logger))
		if err != nil {
			return nil, err
		}
		sinks = append(sinks, audit.NewSink(webhook, o.WebhookSink, lost, s.clock, s.logger))
	}
	return audit.New(policy, sinks, s.metrics, s.clock), nil
}

// audited puts the two audit filters around authentication, if there is an
// audit policy.
func (s *Server) audited(authenticate gin.HandlerFunc) []gin.HandlerFunc {
	if s.auditor == nil {
		return []gin.HandlerFunc{authenticate}
	}
	return []gin.HandlerFunc{filters.AuditRefused(s.auditor), authenticate, filters.Audit(s.auditor, s.clock)}
}
