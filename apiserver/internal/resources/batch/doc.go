// Package batch holds what is particular to jobs, whose pods run to completion,
// and to cron jobs, which create jobs on a schedule.
package batch
