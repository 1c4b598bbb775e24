// Package metrics names what the scheduler measures, as upstream's scheduler
// names it, so that dashboards carry over. The rooms that measure are handed a
// Metrics; nothing here decides anything.
package metrics
