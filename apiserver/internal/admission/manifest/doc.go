// Package manifest reads webhooks and admission policies from files (KEP-5793): a platform's own, which are
// in force before the first request is answered, and which no request can change or remove.
//
// A Directory holds those of one admission plugin, as its configuration names it. admission/chain
// reads it at the start, and follows its changes; a change with an error is not taken up. The
// plugins get complete objects: with defaults, and validated as if a client had sent them.
package manifest
