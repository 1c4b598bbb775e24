// Package remote connects the user's terminal to a container: the upgraded
// connections of exec and attach, and port-forward. It sets terminals to raw
// mode and always restores them.
//
// The verbs' rooms (below command) call it. The protocols are client-go's:
// WebSocket first, SPDY for servers that have only that.
package remote
