package server

import (
	"github.com/gin-gonic/gin"

	"kctl/apiserver/internal/filters"
)

// chain passes every request through the filters, in this order, before a
// handler sees it. Package filters says what each is for.
func (s *surface) chain(router *gin.Engine) error {
	o := &s.options.Operation
	cors, err := o.CORS()
	if err != nil {
		return err
	}
	router.Use(
		filters.Begin(s.clock),
		filters.Observe(s.metrics, s.clock, s.objects.servesCustom, s.logger),
		filters.Recover(s.logger),
		filters.Pace(s.options.RequestTimeout, s.logger),
		filters.Warnings(),
		s.drain.Filter(),
	)
	if len(o.HSTSDirectives) > 0 {
		router.Use(filters.StrictTransport(o.HSTSDirectives))
	}
	if len(cors) > 0 {
		router.Use(filters.CORS(cors))
	}
	if o.GoawayChance > 0 {
		router.Use(filters.Goaway(o.GoawayChance))
	}
	router.Use(s.audited(filters.Authenticate(&s.access.identities.Chain, s.access.identities.Headers, s.metrics, s.clock, s.logger))...)
	if s.tracer != nil {
		router.Use(filters.Tracing(s.tracer))
	}
	router.Use(
		filters.Impersonate(s.access.authorizer, s.clock, s.logger),
		filters.Stream(s.logger),
		filters.Deadline(s.options.RequestTimeout, s.draining),
		s.limit(),
		filters.Authorize(s.access.authorizer, s.metrics, s.clock, s.logger),
		filters.Names(),
		filters.Relay(s.stamps.ring, s.logger),
	)
	return nil
}

// audited puts the two audit filters around authentication, if there is an
// audit policy.
func (s *surface) audited(authenticate gin.HandlerFunc) []gin.HandlerFunc {
	auditor := s.policy.auditor
	if auditor == nil {
		return []gin.HandlerFunc{authenticate}
	}
	return []gin.HandlerFunc{filters.AuditRefused(auditor), authenticate, filters.Audit(auditor, s.clock)}
}
