// A grader without a network.
module.exports = class {
  id() { return 'grader'; }
  async callApi() { return { output: '{"pass": true, "score": 1, "reason": "fine", "steps": ["look"]}' }; }
};
