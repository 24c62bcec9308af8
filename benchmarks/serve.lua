-- For wrk: decisions, and with the argument "rewards" the reward of a decision made some answers before, in turns.
local waiting, first, last, rewards, reward = {}, 1, 0, false, 0
local LATE = 64 -- decisions of a thread until the reward of one is reported

function init(args)
  rewards = args[1] == "rewards"
  wrk.method = "POST"
  wrk.headers["Content-Type"] = "application/json"
end

function request()
  if rewards and last - first >= LATE then
    local id = waiting[first]
    waiting[first], first, reward = nil, first + 1, 1 - reward
    return wrk.format(nil, "/v1/players/x/rewards", nil, string.format('{"decision":"%s","reward":%d}', id, reward))
  end
  return wrk.format(nil, "/v1/players/x/decisions", nil, "{}")
end

function response(status, headers, body)
  local id = rewards and string.match(body, '^{"id":"([^"]+)"')
  if id then
    last = last + 1
    waiting[last] = id
  end
end
