// Package extensions tests what users add to the API: custom resources, APIs of
// other servers, admission webhooks and admission policies.
package extensions
